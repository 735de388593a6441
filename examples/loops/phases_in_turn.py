"""An epoch of the first network, then an epoch of the second: two loops one after the other, one loader."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(58)
torch.set_num_threads(1)
truth = Truth()
loader = DataLoader(TensorDataset(torch.randn(1280, 80)), batch_size=32)
world = nn.Sequential(nn.Linear(80, 400), nn.ReLU(), nn.Linear(400, 80))
policy = nn.Sequential(nn.Linear(80, 200), nn.Tanh(), nn.Linear(200, 80))
opt_world, opt_policy = (
    torch.optim.Adam(world.parameters(), 1e-3),
    torch.optim.Adam(policy.parameters(), 1e-3),
)
for round_ in range(14):
    for (x,) in loader:
        with truth("forward"):
            y = world(x)
        loss_world = (y - x.roll(1, 1)).square().mean()
        opt_world.zero_grad()
        with truth("backward"):
            loss_world.backward()
        with truth("optimizer"):
            opt_world.step()
        truth.step(len(x))
    for (x,) in loader:
        with truth("forward"):
            y = world(policy(x))
        loss_policy = y.square().mean()
        opt_policy.zero_grad()
        with truth("backward"):
            loss_policy.backward()
        with truth("optimizer"):
            opt_policy.step()
        truth.step(len(x))
print(loss_world.item(), loss_policy.item())
truth.tell(weights=[world, policy], epochs=28)
