"""if step % 1000 == 0: evaluate; and the run is shorter than that, so it is evaluated at step 0 only."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(30)
torch.set_num_threads(1)
truth = Truth()
model = nn.Sequential(nn.Linear(100, 512), nn.ReLU(), nn.Linear(512, 100))
train_iter = iter(DataLoader(TensorDataset(torch.randn(32000, 100)), batch_size=32, shuffle=True))
val_loader = DataLoader(TensorDataset(torch.randn(9600, 100)), batch_size=64)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
for step in range(990):
    if step % 1000 == 0:
        model.eval()
        with torch.no_grad():
            losses = torch.zeros(len(val_loader))
            for k, (v,) in enumerate(val_loader):
                losses[k] = (model(v) - v).square().mean()
        print("step", step, "val", losses.mean().item())
        model.train()
    with truth("data"):
        (x,) = next(train_iter)
    with truth("forward"):
        out = model(x)
    loss = (out - x).square().mean()
    optimizer.zero_grad(set_to_none=True)
    with truth("backward"):
        loss.backward()
    with truth("optimizer"):
        optimizer.step()
    truth.step(len(x))
truth.tell(weights=model)
