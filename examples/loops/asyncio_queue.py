"""An event loop: one task produces, the other trains."""

import asyncio
from time import perf_counter

import torch
from _truth import Truth
from torch import nn

torch.manual_seed(8)
torch.set_num_threads(1)
truth = Truth()
model = nn.Linear(512, 512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


async def produce(out, count):
    for _ in range(count):
        await asyncio.sleep(0.006)
        await out.put(torch.randn(64, 512))
    await out.put(None)


async def consume(inbox):
    while True:
        began = perf_counter()
        x = await inbox.get()
        truth.add("data", perf_counter() - began)
        if x is None:
            return
        with truth("forward"):
            y = model(x)
        loss = nn.functional.smooth_l1_loss(y, x.flip(1))
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step()


async def main():
    q = asyncio.Queue(maxsize=2)
    await asyncio.gather(produce(q, 400), consume(q))


asyncio.run(main())
truth.tell(weights=model, findings=["data_starvation", "untracked_time"])
