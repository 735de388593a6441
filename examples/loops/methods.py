"""The model is called through methods of its own."""

import json
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 32))
        self.decoder = nn.Sequential(nn.Linear(16, 512), nn.ReLU(), nn.Linear(512, 256))

    def encode(self, x):
        return self.encoder(x).chunk(2, dim=1)

    def elbo(self, x):
        mean, log_variance = self.encode(x)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        kl = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
        return (self.decoder(z) - x).square().sum(1).mean() + kl


torch.manual_seed(0)
torch.set_num_threads(1)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=1e-3)
forward, began, steps = 0.0, time.perf_counter(), 0
for _ in range(5):
    for (x,) in DataLoader(TensorDataset(torch.rand(1280, 256)), batch_size=64):
        t = time.perf_counter()
        loss = vae.elbo(x)
        forward += time.perf_counter() - t
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
share = forward / (time.perf_counter() - began)
print(json.dumps({"steps": steps, "samples": 6400, "epochs": 5, "shares": {"forward": round(share, 3)}}))
