"""A trainer class with callbacks: fit, run_epoch, run_batch, training_step, compute_loss, each a method."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

truth = Truth()


class Callback:
    def on_batch_end(self, trainer, loss): ...
    def on_epoch_end(self, trainer): ...


class History(Callback):
    def __init__(self):
        self.losses = []

    def on_batch_end(self, trainer, loss):
        self.losses.append(loss.detach())

    def on_epoch_end(self, trainer):
        mean = torch.stack(self.losses).mean().item()
        self.losses.clear()
        print(f"epoch {trainer.epoch}: {mean:.5f}")


class BaseTrainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks, self.epoch = model, callbacks, 0
        self.optimizer = self.configure()

    def configure(self):
        return torch.optim.RAdam(self.model.parameters(), lr=1e-3)

    def fit(self, loader, epochs):
        for self.epoch in range(epochs):
            self.run_epoch(loader)
            self.notify("on_epoch_end")

    def notify(self, event, *args):
        for c in self.callbacks:
            getattr(c, event)(self, *args)

    def run_epoch(self, loader):
        for batch in loader:
            self.run_batch(batch)

    def run_batch(self, batch):
        loss = self.training_step(batch)
        self.optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        self.optimizer_step()
        self.notify("on_batch_end", loss)
        truth.step(len(batch[0]))

    def optimizer_step(self):
        with truth("optimizer"):
            self.optimizer.step()


class VAETrainer(BaseTrainer):
    def training_step(self, batch):
        return self.compute_loss(*batch)

    def compute_loss(self, x):
        with truth("forward"):
            out, mu, logvar = self.model(x)
        return nn.functional.mse_loss(out, x) - 0.005 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Sequential(nn.Linear(196, 400), nn.ReLU()), nn.Sequential()
        self.mu, self.logvar = nn.Linear(400, 20), nn.Linear(400, 20)
        self.decode.extend([nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 196)])

    def forward(self, x):
        h = self.encode(x)
        mu, logvar = self.mu(h), self.logvar(h)
        return self.decode(mu + torch.randn_like(mu) * (0.5 * logvar).exp()), mu, logvar


torch.manual_seed(48)
torch.set_num_threads(1)
trainer = VAETrainer(VAE(), [History()])
trainer.fit(DataLoader(TensorDataset(torch.randn(2000, 196)), batch_size=40, shuffle=True), 26)
truth.tell(weights=trainer.model, epochs=26)
