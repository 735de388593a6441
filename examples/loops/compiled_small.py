"""A small compiled model, eager backend, evaluation through the same compiled object."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(64, 512), nn.Linear(512, 64)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


torch.manual_seed(41)
torch.set_num_threads(1)
truth, model = Truth(), Net()
compiled = torch.compile(model, backend="aot_eager")
opt = torch.optim.SGD(compiled.parameters(), lr=0.01)
dl = DataLoader(TensorDataset(torch.randn(1920, 64)), batch_size=48)
held_out = torch.randn(480, 64)
for epoch in range(28):
    compiled.train()
    for (x,) in dl:
        with truth("forward"):
            out = compiled(x)
        loss = (out - x.roll(1, 1)).square().mean()
        opt.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            opt.step()
        truth.step(len(x))
    compiled.eval()
    with truth("eval"), torch.no_grad():
        v = sum((compiled(h) - h.roll(1, 1)).square().mean().item() for h in held_out.split(48))
    print(epoch, f"{v:.4f}")
truth.tell(weights=model, epochs=28)
