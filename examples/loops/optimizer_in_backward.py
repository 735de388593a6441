"""An optimizer for each parameter, stepped in a hook as soon as its gradient is there."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(43)
torch.set_num_threads(1)
truth = Truth()
model = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(160, 160), nn.ReLU())], nn.Linear(160, 8))
optimizer_dict = {p: torch.optim.Adam([p], foreach=False) for p in model.parameters()}


def optimizer_hook(parameter):
    optimizer_dict[parameter].step()
    optimizer_dict[parameter].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(optimizer_hook)

loader = DataLoader(
    TensorDataset(torch.randn(1600, 160), torch.randint(0, 8, (1600,))), batch_size=32, shuffle=True
)
for epoch in range(24):
    for x, y in loader:
        with truth("forward"):
            out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        truth.step(len(x))
    print(epoch, loss.item())
truth.tell(weights=model, epochs=24)
