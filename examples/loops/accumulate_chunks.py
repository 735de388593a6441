"""One large batch, cut into chunks that fit; the trainer is a class."""

import torch
from _truth import Truth
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class ChunkedTrainer:
    def __init__(self, module, chunk):
        self.module, self.chunk = module, chunk
        self.optimizer = optim.SGD(module.parameters(), lr=0.05, nesterov=True, momentum=0.9)
        self.criterion = nn.MSELoss(reduction="sum")
        self.truth, self.micro = Truth(), 0

    def micro_step(self, x, y, scale):
        with self.truth("forward"):
            out = self.module(x)
        loss = self.criterion(out, y) * scale
        with self.truth("backward"):
            loss.backward()
        self.micro += 1
        return loss.detach()

    def step(self, x, y):
        self.optimizer.zero_grad()
        total = sum(
            self.micro_step(a, b, 1 / len(x)) for a, b in zip(x.split(self.chunk), y.split(self.chunk))
        )
        with self.truth("optimizer"):
            self.optimizer.step()
        self.truth.step(len(x))
        return total


torch.manual_seed(3)
torch.set_num_threads(1)
trainer = ChunkedTrainer(nn.Sequential(nn.Linear(200, 300), nn.SiLU(), nn.Linear(300, 200)), 48)
data = DataLoader(TensorDataset(torch.randn(2000, 200), torch.randn(2000, 200)), batch_size=200, shuffle=True)
for epoch in range(70):
    losses = [trainer.step(*batch) for batch in data]
print("last", float(losses[-1]))
trainer.truth.tell(micro_batches=trainer.micro, epochs=70, weights=trainer.module)
