"""Poutyne: Model.fit_generator, with validation, and a callback that counts."""

import json
import time

import torch
from poutyne import Callback, Model
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Counter(Callback):
    steps = samples = 0
    first = last = evaluated = 0.0

    def on_train_batch_end(self, batch_number, logs):
        self.steps, self.samples, self.last = self.steps + 1, self.samples + logs["size"], time.perf_counter()
        self.first = self.first or self.last

    def on_train_end(self, logs):
        pass

    def on_valid_begin(self, logs):
        self.began = time.perf_counter()

    def on_valid_end(self, logs):
        self.spent = time.perf_counter() - self.began
        if self.params["epochs"] != self.epoch:
            self.evaluated += self.spent

    def on_epoch_begin(self, epoch_number, logs):
        self.epoch = epoch_number


torch.manual_seed(0)
torch.set_num_threads(1)
data = [TensorDataset(torch.randn(n, 64), torch.randint(0, 5, (n,))) for n in (1600, 800)]
train, valid = DataLoader(data[0], batch_size=32, shuffle=True), DataLoader(data[1], batch_size=32)
net = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 5))
counter = Counter()
model = Model(net, "sgd", "cross_entropy", batch_metrics=["accuracy"])
model.fit_generator(train, valid, epochs=15, callbacks=[counter], verbose=False)
share = counter.evaluated / (counter.last - counter.first)
told = {"steps": counter.steps, "samples": counter.samples, "epochs": 15, "findings": []}
print(json.dumps({**told, "shares": {"eval": round(share, 3)}}))
