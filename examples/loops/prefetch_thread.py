"""A thread of the script's own fills a queue, the loop takes from it; a None is the end."""

import queue
import threading
import time

import torch
from _truth import Truth
from torch import nn


class BackgroundGenerator(threading.Thread):
    def __init__(self, generator, max_prefetch=3):
        super().__init__(daemon=True)
        self.queue, self.generator = queue.Queue(max_prefetch), generator
        self.start()

    def run(self):
        for item in self.generator:
            self.queue.put(item)
        self.queue.put(None)

    def __next__(self):
        item = self.queue.get()
        if item is None:
            raise StopIteration
        return item

    def __iter__(self):
        return self


def read():
    g = torch.Generator().manual_seed(7)
    for _ in range(350):
        time.sleep(0.008)  # a slow disk
        yield torch.randn(64, 128, generator=g)


torch.manual_seed(7)
torch.set_num_threads(1)
truth = Truth()
auto = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 128))
optimizer = torch.optim.Adam(auto.parameters())
end = time.perf_counter()
for x in BackgroundGenerator(read()):
    truth.add("data", time.perf_counter() - end)
    with truth("forward"):
        y = auto(x)
    loss = (y - x).pow(2).mean()
    optimizer.zero_grad()
    with truth("backward"):
        loss.backward()
    with truth("optimizer"):
        optimizer.step()
    truth.step()
    end = time.perf_counter()
print("reconstruction", loss.item())
truth.tell(weights=auto, findings=["data_starvation", "untracked_time"])
