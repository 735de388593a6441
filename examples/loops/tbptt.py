"""Truncated backpropagation: several backward passes a sequence, one step at its end."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(51)
torch.set_num_threads(1)
truth, passes = Truth(), 0


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(12, 48, batch_first=True)
        self.out = nn.Linear(48, 12)

    def forward(self, x, state=None):
        h, state = self.lstm(x, state)
        return self.out(h), state


def detach(state):
    return tuple(s.detach() for s in state)


model = Tagger()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(22):
    for (sequence,) in DataLoader(TensorDataset(torch.randn(240, 61, 12)), batch_size=16, shuffle=True):
        optimizer.zero_grad()
        state = None
        for begin in range(0, 60, 20):
            x, y = sequence[:, begin : begin + 20], sequence[:, begin + 1 : begin + 21]
            with truth("forward"):
                out, state = model(x, state)
            loss = (out - y).square().mean() / 3
            with truth("backward"):
                loss.backward()
            passes += 1
            state = detach(state)
        with truth("optimizer"):
            optimizer.step()
        truth.step(len(sequence))
print(f"{loss.item():.7f}")
truth.tell(weights=model, epochs=22, micro_batches=passes)
