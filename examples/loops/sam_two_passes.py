"""Sharpness-aware minimisation as a function: climb, second pass, climb back, step."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

truth = Truth()


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self):
        norm = torch.norm(torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"]]))
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * (group["rho"] / (norm + 1e-12)))
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.first_step()
        closure()
        self.second_step()


torch.manual_seed(44)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(100, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 9))
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.05, momentum=0.9)
dataset = DataLoader(TensorDataset(torch.randn(1600, 100), torch.randint(0, 9, (1600,))), batch_size=32)
for epoch in range(22):
    for x, y in dataset:

        def closure():
            with truth("forward"):
                out = model(x)  # noqa: B023
            loss = nn.functional.cross_entropy(out, y)  # noqa: B023
            with truth("backward"):
                loss.backward()
            return loss

        loss = closure()
        optimizer.step(closure)
        optimizer.zero_grad()
        truth.step(len(x))
print(loss.item())
truth.tell(weights=model, epochs=22)
