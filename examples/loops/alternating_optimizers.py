"""Two optimizers take turns: even iterations train the encoder, odd ones the decoder."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(42)
torch.set_num_threads(1)
truth = Truth()
encoder = nn.Sequential(nn.Linear(120, 400), nn.ReLU(), nn.Linear(400, 20))
decoder = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 120))
optimizers = [torch.optim.Adam(encoder.parameters(), 1e-3), torch.optim.Adam(decoder.parameters(), 1e-3)]
it = 0
for epoch in range(26):
    for (x,) in DataLoader(TensorDataset(torch.randn(2400, 120)), batch_size=40):
        turn = optimizers[it % 2]
        for o in optimizers:
            o.zero_grad()
        with truth("forward"):
            y = decoder(encoder(x))
        loss = (y - x).square().mean()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            turn.step()
        it += 1
        truth.step(len(x))
print(f"{loss:.6f}")
truth.tell(weights=[encoder, decoder], epochs=26)
