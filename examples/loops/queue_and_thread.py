"""A thread of the script's own fetches ahead into a queue."""

import json
import queue
import threading
import time

import torch
from torch import nn

torch.manual_seed(0)
ready = queue.Queue(maxsize=4)


def fill():
    for _ in range(300):
        time.sleep(0.005)
        ready.put(torch.randn(16, 10))
    ready.put(None)


threading.Thread(target=fill, daemon=True).start()
model, steps = nn.Linear(10, 10), 0
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while (x := ready.get()) is not None:
    optimizer.zero_grad()
    (model(x) - x).square().sum().backward()
    optimizer.step()
    steps += 1
print(json.dumps({"steps": steps}))
