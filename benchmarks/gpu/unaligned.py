"""Half precision with layer sizes that are no multiples of 8 (`amp_unaligned_shapes`)."""

from loop import Loop, made_there, perceptron, regress

loop = Loop(__doc__)
width = 4095
regress(loop, perceptron(loop, width, 8), made_there(loop, 2048, width, batches=8), half=True)
loop.done()
