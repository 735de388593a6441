"""A wrapper that holds the online network and its average: the optimizer gets it, nothing calls it."""

import copy

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EMA(nn.Module):
    def __init__(self, model, beta=0.995):
        super().__init__()
        self.online_model = model
        self.ema_model = copy.deepcopy(model).requires_grad_(False)
        self.beta = beta

    @torch.no_grad()
    def update(self):
        for average, online in zip(self.ema_model.parameters(), self.online_model.parameters()):
            average.lerp_(online, 1 - self.beta)


torch.manual_seed(36)
torch.set_num_threads(1)
truth = Truth()
ema = EMA(nn.Sequential(nn.Linear(96, 384), nn.ReLU(), nn.Linear(384, 96)))
optimizer = torch.optim.Adam([p for p in ema.parameters() if p.requires_grad], lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(1600, 96)), batch_size=32, shuffle=True, drop_last=True)
for epoch in range(40):
    for (x,) in loader:
        with truth("forward"):
            view = ema.online_model(x + 0.1 * torch.randn_like(x))
            with torch.no_grad():
                target = ema.ema_model(x)
        loss = 2 - 2 * nn.functional.cosine_similarity(view, target).mean()
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        ema.update()
        truth.step(len(x))
print("loss", loss.item())
truth.tell(weights=ema, epochs=40)
