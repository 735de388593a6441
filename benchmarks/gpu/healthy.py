"""Nothing is wrong: workers, pinned memory, bfloat16, TF32, and the device always has work."""

from loop import Loop, classify, convolutions, images
from torch import set_float32_matmul_precision

loop = Loop(__doc__)
set_float32_matmul_precision("high")
classify(loop, convolutions(loop, 128), images(loop, side=128, batch=128))
loop.done()
