"""A validation that forgets no_grad, and one that needs gradients: a force field's forces are derivatives."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(32)
torch.set_num_threads(1)
truth = Truth()


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(30, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 1)
        )

    def forward(self, positions):
        positions = positions.requires_grad_()
        energy = self.mlp(positions).sum()
        (gradient,) = torch.autograd.grad(energy, positions, create_graph=self.training)
        return energy, -gradient


def loader(n, batch):
    positions = torch.randn(n, 30)
    return DataLoader(TensorDataset(positions, -positions), batch_size=batch)


model, train, valid = Potential(), loader(1280, 32), loader(512, 64)
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(32):
    model.train()
    for r, f in train:
        _, forces = model(r)
        loss = (forces - f).square().mean()
        optimizer.zero_grad()
        loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step(len(r))
    model.eval()
    error = 0.0
    with truth("eval"):
        for r, f in valid:
            _, forces = model(r)
            error += (forces - f).abs().mean().item()
    print(epoch, f"{error / len(valid):.5f}")
truth.tell(weights=model, epochs=32)
