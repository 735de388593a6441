"""Activation checkpointing: blocks run forward once more inside the backward pass."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from torch.utils.data import DataLoader, TensorDataset


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(64, 256)
        self.blocks = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(4)])
        self.head = nn.Sequential(nn.LayerNorm(256), nn.Linear(256, 5))

    def forward(self, x):
        x = checkpoint_sequential(self.blocks, 2, self.stem(x), use_reentrant=False)
        return checkpoint(self.head, x, use_reentrant=False)


torch.manual_seed(56)
torch.set_num_threads(1)
truth, model = Truth(), Deep()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(12):
    for x, y in DataLoader(TensorDataset(torch.randn(1600, 64), torch.randint(0, 5, (1600,))), batch_size=32):
        with truth("forward"):
            out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step(len(x))
print(loss.item())
truth.tell(weights=model, epochs=12)
