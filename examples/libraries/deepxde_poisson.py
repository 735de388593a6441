"""DeepXDE on torch: a PINN, first Adam with its closure, then L-BFGS."""

import contextlib
import io
import json
import os

os.environ["DDE_BACKEND"] = "pytorch"
import deepxde as dde
import numpy as np
import torch

dde.config.set_random_seed(0)
torch.set_num_threads(1)


def pde(x, y):
    return -dde.grad.hessian(y, x) - np.pi**2 * torch.sin(np.pi * x)


geometry = dde.geometry.Interval(-1, 1)
boundary = dde.icbc.DirichletBC(geometry, lambda x: 0 * x, lambda _, on: on)
data = dde.data.PDE(geometry, pde, boundary, num_domain=160, num_boundary=2, num_test=100)
model = dde.Model(data, dde.nn.FNN([1] + [64] * 3 + [1], "tanh", "Glorot uniform"))
with contextlib.redirect_stdout(io.StringIO()):  # it prints how long it took
    model.compile("adam", lr=1e-3)
history, state = model.train(iterations=900, display_every=300, verbose=0)
print("loss", float(sum(history.loss_train[-1])))
print(json.dumps({"steps": 900, "findings": []}))
