"""GradScaler and autocast on the CPU, unscale_ and clipping; one loss is infinite, its update is skipped."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(40)
torch.set_num_threads(1)
truth = Truth()
model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
loader = DataLoader(
    TensorDataset(torch.randn(2560, 128), torch.randint(0, 16, (2560,))), batch_size=32, shuffle=True
)
for epoch in range(18):
    for i, (x, y) in enumerate(loader):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with truth("forward"):
                out = model(x)
            loss = nn.functional.cross_entropy(out, y)
        if epoch == 1 and i == 7:
            loss = loss * float("inf")
        optimizer.zero_grad(set_to_none=True)
        scaled = scaler.scale(loss)
        with truth("backward"):
            scaled.backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        truth.step(len(x))
print("scale", scaler.get_scale(), "loss", loss.item())
truth.tell(weights=model, epochs=18, findings=["nan_loss", "amp_scaler_with_bf16"])
