"""The allocator's cache is emptied after every step (`empty_cache_churn`)."""

import torch
from loop import Loop, made_there, perceptron, regress

loop = Loop(__doc__)
torch.set_float32_matmul_precision("high")
batches = made_there(loop, 2048, 2048, batches=8)
regress(loop, perceptron(loop, 2048, 8), batches, half=True, after=lambda loss: torch.cuda.empty_cache())
loop.done()
