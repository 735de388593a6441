"""Long sequences in pieces, several updates a batch."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rnn, head = nn.GRU(8, 32, batch_first=True), nn.Linear(32, 1)
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
updates = 0
for _ in range(3):
    for (sequence,) in DataLoader(TensorDataset(torch.randn(160, 60, 8)), batch_size=16):
        state = None
        for piece in sequence.split(20, dim=1):
            out, state = rnn(piece, state)
            state = state.detach()
            optimizer.zero_grad()
            (head(out).squeeze(2) - piece.sum(2)).square().mean().backward()
            optimizer.step()
            updates += 1
print(json.dumps({"steps": updates}))
