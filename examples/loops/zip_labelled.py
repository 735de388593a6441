"""Two loaders zipped: labelled and unlabelled batches (FixMatch), the shorter one cycled."""

import itertools

import torch
import torch.nn.functional as F
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(12)
torch.set_num_threads(1)
truth = Truth()
labelled = DataLoader(TensorDataset(torch.randn(160, 64), torch.randint(0, 4, (160,))), 16, shuffle=True)
unlabelled = DataLoader(TensorDataset(torch.randn(2880, 64)), 48, shuffle=True)
model = nn.Sequential(nn.Linear(64, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9)
for epoch in range(19):
    for (x, y), (u,) in zip(itertools.cycle(labelled), unlabelled):
        with truth("forward"):
            logits = model(torch.cat([x, u + 0.1 * torch.randn_like(u)]))
            with torch.no_grad():
                guess = model(u).softmax(1)
        confidence, pseudo = guess.max(1)
        loss = F.cross_entropy(logits[:16], y)
        loss = loss + (F.cross_entropy(logits[16:], pseudo, reduction="none") * (confidence > 0.4)).mean()
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step()
print(f"{loss.item():.5f}")
truth.tell(weights=model)
