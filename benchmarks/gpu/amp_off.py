"""Large matrices in TF32 where 16 bits would do (`amp_off`)."""

from loop import Loop, made_there, perceptron, regress
from torch import set_float32_matmul_precision

loop = Loop(__doc__)
set_float32_matmul_precision("high")
regress(loop, perceptron(loop, 4096, 12), made_there(loop, 4096, 4096, batches=4))
loop.done()
