"""batch_size=None: the dataset itself gives whole batches."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Whole(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, index):
        return {"x": torch.randn(25, 14), "y": torch.randint(0, 5, (25,))}


torch.manual_seed(0)
loader = DataLoader(Whole(), batch_size=None, shuffle=True)
model = nn.Sequential(nn.Linear(14, 40), nn.ReLU(), nn.Linear(40, 5))
optimizer = torch.optim.NAdam(model.parameters())
count = 0
for _ in range(5):
    for batch in loader:
        optimizer.zero_grad()
        nn.CrossEntropyLoss()(model(batch["x"]), batch["y"]).backward()
        optimizer.step()
        count += 1
print(json.dumps({"steps": count, "samples": count * 25, "epochs": 5}))
