"""The model is never called itself: model.loss(batch), model.encode(x) are methods that use its parts."""

import torch
from _truth import Truth
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


class Flow(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        half = dim // 2
        self.couplings = nn.ModuleList(
            nn.Sequential(nn.Linear(half, 256), nn.ReLU(), nn.Linear(256, 2 * half)) for _ in range(depth)
        )

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        logdet = x.new_zeros(len(x))
        for net in self.couplings:
            a, b = x.chunk(2, 1)
            scale, shift = net(a).chunk(2, 1)
            scale = scale.tanh()
            x = torch.cat([b * scale.exp() + shift, a], 1)
            logdet = logdet + scale.sum(1)
        return x, logdet

    def log_prob(self, x: Tensor) -> Tensor:
        z, logdet = self.encode(x)
        return logdet - 0.5 * z.square().sum(1)

    def loss(self, batch: list[Tensor]) -> Tensor:
        return -self.log_prob(batch[0]).mean()


torch.manual_seed(50)
torch.set_num_threads(1)
truth, flow = Truth(), Flow(64, 5)
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-4)
loader = DataLoader(TensorDataset(torch.randn(1500, 64)), batch_size=50)
for epoch in range(40):
    for batch in loader:
        with truth("forward"):
            nll = flow.loss(batch)
        optimizer.zero_grad()
        with truth("backward"):
            nll.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step(len(batch[0]))
print(f"nll {nll.item():.5f}")
truth.tell(weights=flow, epochs=40)
