"""Large batches are copied from pageable memory: each copy keeps the host waiting (`pin_memory_off`)."""

from loop import Loop, classify, convolutions, images
from torch import set_float32_matmul_precision

loop = Loop(__doc__)
set_float32_matmul_precision("high")
classify(loop, convolutions(loop, 16), images(loop, side=224, batch=128, pinned=False))
loop.done()
