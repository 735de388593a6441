"""Opacus: make_private; Poisson sampling, per-sample gradients, and a memory manager that cuts logical
batches.
"""

import json
import warnings

import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = DataLoader(TensorDataset(torch.randn(1600, 64), torch.randint(0, 4, (1600,))), batch_size=64)
model, optimizer, loader = PrivacyEngine().make_private(
    module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.1, max_grad_norm=1.0
)
steps = samples = micro = 0


def counted(_):
    global steps
    steps += 1


optimizer.attach_step_hook(counted)
for epoch in range(14):
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=32, optimizer=optimizer) as cut:
        for x, y in cut:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            samples, micro = samples + len(x), micro + 1
print(json.dumps({"steps": steps, "samples": samples, "micro_batches": micro, "epochs": 14, "findings": []}))
