"""Hundreds of tiny operations: the device waits for each to be launched (`launch_bound`)."""

from loop import Loop, made_there, perceptron, regress

loop = Loop(__doc__)
regress(loop, perceptron(loop, 64, 200), made_there(loop, 8, 64))
loop.done()
