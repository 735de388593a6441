"""SWA: an averaged model, and update_bn, which runs over the training loader without gradients."""

import torch
from _truth import Truth
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(52)
torch.set_num_threads(1)
truth = Truth()
model = nn.Sequential(nn.Linear(70, 400), nn.BatchNorm1d(400), nn.ReLU(), nn.Linear(400, 6))
swa_model = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
swa_scheduler = SWALR(optimizer, swa_lr=0.02)
loader = DataLoader(
    TensorDataset(torch.randn(1600, 70), torch.randint(0, 6, (1600,))), batch_size=32, shuffle=True
)
for epoch in range(24):
    for x, y in loader:
        optimizer.zero_grad()
        with truth("forward"):
            out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step(len(x))
    if epoch % 4 == 3:
        swa_model.update_parameters(model)
        swa_scheduler.step()
        with truth("eval"):  # no training: no epoch, no samples
            update_bn(loader, swa_model)
print(loss.item())
truth.tell(weights=[model, swa_model], epochs=24)
