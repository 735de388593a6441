"""def cycle(loader): while True: for batch in loader: yield batch; and next() of it, so many iterations."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def cycle(dl):
    while True:
        for data in dl:
            yield data


class Diffusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(65, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 64)
        )

    def forward(self, x):
        t = torch.rand(len(x), 1)
        noise = torch.randn_like(x)
        noisy = (1 - t) * x + t * noise
        return nn.functional.mse_loss(self.net(torch.cat([noisy, t], 1)), noise)


class Trainer:
    def __init__(self, diffusion, dataset, *, steps=1500, batch_size=32):
        self.model, self.steps, self.step = diffusion, steps, 0
        self.dl = cycle(DataLoader(dataset, batch_size=batch_size, shuffle=True, drop_last=True))
        self.opt = torch.optim.Adam(diffusion.parameters(), lr=8e-5, betas=(0.9, 0.99))
        self.truth = Truth()

    def train(self):
        while self.step < self.steps:
            with self.truth("data"):
                (data,) = next(self.dl)
            with self.truth("forward"):
                loss = self.model(data)
            with self.truth("backward"):
                loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            with self.truth("optimizer"):
                self.opt.step()
            self.opt.zero_grad()
            self.step += 1
            self.truth.step(len(data))
        print("done at", self.step)


torch.manual_seed(13)
torch.set_num_threads(1)
trainer = Trainer(Diffusion(), TensorDataset(torch.randn(1000, 64)))
trainer.train()
trainer.truth.tell(weights=trainer.model)
