"""A batch far smaller than the device could take (`memory_headroom`)."""

from loop import Loop, classify, convolutions, images
from torch import set_float32_matmul_precision

loop = Loop(__doc__)
set_float32_matmul_precision("high")
classify(loop, convolutions(loop, 64), images(loop, side=64, batch=16))
loop.done()
