"""Two losses of one batch, two backward passes, retain_graph; one step. That is no accumulation."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(57)
torch.set_num_threads(1)
truth = Truth()
trunk, heads = (
    nn.Sequential(nn.Linear(100, 400), nn.ReLU()),
    nn.ModuleList([nn.Linear(400, 10), nn.Linear(400, 1)]),
)
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=1e-3)
data = TensorDataset(torch.randn(2000, 100), torch.randint(0, 10, (2000,)), torch.randn(2000, 1))
for epoch in range(24):
    for x, label, value in DataLoader(data, batch_size=40, shuffle=True):
        with truth("forward"):
            h = trunk(x)
            logits, predicted = heads[0](h), heads[1](h)
        classification = nn.functional.cross_entropy(logits, label)
        regression = nn.functional.mse_loss(predicted, value)
        optimizer.zero_grad()
        with truth("backward"):
            classification.backward(retain_graph=True)
        with truth("backward"):
            regression.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step(len(x))
print(classification.item(), regression.item())
truth.tell(weights=[trunk, heads], epochs=24, micro_batches=truth.steps)
