"""Many small layers and a batch far smaller than the device could take (`memory_headroom`)."""

from loop import Loop, classify, convolutions, images
from torch import set_float32_matmul_precision

loop = Loop(__doc__)
set_float32_matmul_precision("high")
classify(loop, convolutions(loop, 32, depth=60), images(loop, side=96, batch=32))
loop.done()
