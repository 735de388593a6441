"""torchtuples: Model.fit on arrays, with validation data; its own data loader and optimizer wrapper."""

import json

import numpy as np
import torch
import torchtuples as tt
from torch import nn


class Counter(tt.callbacks.Callback):
    steps = epochs = 0

    def on_batch_end(self):
        self.steps += 1

    def on_epoch_end(self):
        self.epochs += 1


np.random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)
x, y = np.random.randn(6000, 40).astype("float32"), np.random.randn(6000, 1).astype("float32")
net = tt.practical.MLPVanilla(40, [256, 256], 1, batch_norm=True, dropout=0.1)
model, counter = tt.Model(net, nn.MSELoss(), tt.optim.Adam(1e-3)), Counter()
log = model.fit(x, y, 64, 12, [counter], verbose=False, val_data=(x[:1000], y[:1000]))
print(json.dumps({"steps": counter.steps, "samples": 6000 * 12, "epochs": counter.epochs, "findings": []}))
