"""DeepXDE on torch: L-BFGS, whose steps run a closure; a callback counts the calls of step."""

import contextlib
import io
import json
import os

os.environ["DDE_BACKEND"] = "pytorch"
import deepxde as dde
import torch

dde.config.set_random_seed(0)
torch.set_num_threads(1)


class Counter(dde.callbacks.Callback):
    steps = 0

    def on_batch_begin(self):
        self.steps += 1


def ode(t, y):
    return [dde.grad.jacobian(y, t, i=0) - y[:, 1:2], dde.grad.jacobian(y, t, i=1) + y[:, 0:1]]


geometry = dde.geometry.TimeDomain(0, 10)
data = dde.data.PDE(geometry, ode, [], 100, 2, num_test=100)
model, counter = dde.Model(data, dde.nn.FNN([1] + [50] * 3 + [2], "tanh", "Glorot uniform")), Counter()
dde.optimizers.set_LBFGS_options(maxiter=400)
dde.optimizers.config.LBFGS_options.update(iter_per_step=10, fun_per_step=12)
with contextlib.redirect_stdout(io.StringIO()):
    model.compile("L-BFGS")
    model.train(callbacks=[counter], verbose=0)
print(json.dumps({"steps": counter.steps, "findings": []}))
