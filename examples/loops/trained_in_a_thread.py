"""Training runs in a thread, as in an application with a window.

The main thread waits and polls a progress number.
"""

import threading
import time

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Job(threading.Thread):
    def __init__(self):
        super().__init__(name="training")
        self.progress, self.truth = 0.0, Truth()
        self.model = nn.Sequential(nn.Linear(64, 400), nn.ReLU(), nn.Linear(400, 64))

    def run(self):
        optimizer = torch.optim.Adam(self.model.parameters())
        loader = DataLoader(TensorDataset(torch.randn(1600, 64)), batch_size=32)
        for epoch in range(24):
            for (x,) in loader:
                with self.truth("forward"):
                    y = self.model(x)
                loss = (y - x).square().mean()
                optimizer.zero_grad()
                with self.truth("backward"):
                    loss.backward()
                with self.truth("optimizer"):
                    optimizer.step()
                self.truth.step(len(x))
            self.progress = (epoch + 1) / 24


torch.manual_seed(61)
torch.set_num_threads(1)
job = Job()
job.start()
while job.is_alive():
    time.sleep(0.05)
print("progress", job.progress)
job.truth.tell(weights=job.model, epochs=24)
