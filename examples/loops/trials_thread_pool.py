"""Four trials in a pool of two threads. Told are the steps of the thread that began."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import torch
from _truth import Truth
from torch import nn

steps, lock, begun = {}, threading.Lock(), []


def count():
    with lock:
        me = threading.get_ident()
        steps[me] = steps.get(me, 0) + 1


def run(seed, width):
    g = torch.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 64))
    optimizer = torch.optim.Adam(model.parameters())
    if seed:
        time.sleep(0.3)
    begun.append(threading.get_ident())
    for _ in range(900):
        x = torch.randn(64, 64, generator=g)
        loss = (model(x) - x).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        count()
    return width


if __name__ == "__main__":
    torch.manual_seed(28)
    torch.set_num_threads(1)
    with ThreadPoolExecutor(max_workers=2) as pool:
        jobs = [pool.submit(run, seed, width) for seed, width in enumerate((256, 128, 192, 64))]
        print("finished", sorted(job.result() for job in as_completed(jobs)))
    Truth().tell(steps=steps[begun[0]], all_threads=sum(steps.values()), notice="another thread trains")
