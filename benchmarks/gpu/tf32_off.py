"""Large float32 matrices, multiplied in full float32 (`tf32_off`, and `amp_off` beside it)."""

from loop import Loop, made_there, perceptron, regress
from torch import set_float32_matmul_precision

loop = Loop(__doc__)
set_float32_matmul_precision("highest")
regress(loop, perceptron(loop, 4096, 8), made_there(loop, 2048, 4096, batches=8))
loop.done()
