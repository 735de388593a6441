"""A run that is resumed: the loader is advanced past the batches that were trained on already."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(46)
torch.set_num_threads(1)
truth = Truth()
checkpoint = {"epoch": 2, "batch": 33}
dataset = TensorDataset(torch.randn(1600, 150), torch.randn(1600, 3))
model = nn.Sequential(nn.Linear(150, 600), nn.ReLU(), nn.Linear(600, 3))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)


def batches(epoch):
    loader = DataLoader(dataset, batch_size=20, shuffle=True, generator=torch.Generator().manual_seed(epoch))
    iterator = iter(loader)
    if epoch == checkpoint["epoch"]:
        for _ in range(checkpoint["batch"]):
            next(iterator)
    return iterator


for epoch in range(checkpoint["epoch"], 40):
    for x, y in batches(epoch):
        with truth("forward"):
            out = model(x)
        loss = nn.functional.huber_loss(out, y)
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step(len(x))
print("resumed at", checkpoint, "loss", loss.item())
truth.tell(weights=model)
