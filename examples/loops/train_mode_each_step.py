"""model.train() is the first line of the step, model.eval() the first of the validation step."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Learner:
    def __init__(self, net):
        self.net, self.truth = net, Truth()
        self.optim = torch.optim.SGD(net.parameters(), lr=0.01)
        self.loss = nn.CrossEntropyLoss()
        self.on_epoch_end = []

    def train_step(self, x, y):
        self.net.train()
        self.optim.zero_grad()
        with self.truth("forward"):
            out = self.net(x)
        loss = self.loss(out, y)
        with self.truth("backward"):
            loss.backward()
        with self.truth("optimizer"):
            self.optim.step()
        self.truth.step(len(x))
        return loss.item()

    @torch.inference_mode()
    def valid_step(self, x, y):
        self.net.eval()
        return self.loss(self.net(x), y).item()

    def fit(self, train, valid, epochs):
        for epoch in range(epochs):
            t = [self.train_step(*b) for b in train]
            with self.truth("eval"):
                v = [self.valid_step(*b) for b in valid]
            for hook in self.on_epoch_end:
                hook(epoch, sum(t) / len(t), sum(v) / len(v))


torch.manual_seed(31)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(1500, 64), torch.randint(0, 8, (1500,)))
train, valid = torch.utils.data.random_split(data, [1200, 300])
learner = Learner(
    nn.Sequential(nn.Linear(64, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 256), nn.Linear(256, 8))
)
learner.on_epoch_end.append(lambda e, t, v: print(f"{e}: {t:.4f} {v:.4f}"))
learner.fit(DataLoader(train, 24, shuffle=True), DataLoader(valid, 50), 40)
learner.truth.tell(weights=learner.net, epochs=40)
