"""One function for both: run_epoch(loader, train) with set_grad_enabled(train).

The same lines train and evaluate.
"""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

truth = Truth()


def run_epoch(model, loader, criterion, optimizer=None):
    train = optimizer is not None
    model.train(train)
    total = 0.0
    with torch.set_grad_enabled(train):
        for x, y in loader:
            if train:
                with truth("forward"):
                    out = model(x)
            else:
                out = model(x)
            loss = criterion(out, y)
            if train:
                optimizer.zero_grad()
                with truth("backward"):
                    loss.backward()
                with truth("optimizer"):
                    optimizer.step()
                truth.step(len(x))
            total += loss.item() * len(x)
    return total / len(loader.dataset)


torch.manual_seed(54)
torch.set_num_threads(1)
loaders = {
    phase: DataLoader(
        TensorDataset(torch.randn(n, 80), torch.randn(n, 2)), batch_size=b, shuffle=phase == "train"
    )
    for phase, n, b in (("train", 1500, 30), ("val", 900, 60))
}
model = nn.Sequential(
    nn.Linear(80, 512), nn.ReLU(), nn.Dropout(0.2), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 2)
)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
for epoch in range(22):
    for phase in ("train", "val"):
        if phase == "train":
            value = run_epoch(model, loaders[phase], nn.MSELoss(), optimizer)
        else:
            with truth("eval"):
                value = run_epoch(model, loaders[phase], nn.MSELoss())
        print(epoch, phase, f"{value:.5f}")
truth.tell(weights=model, epochs=22)
