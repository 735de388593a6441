"""torch.func: grad_and_value of functional_call, an update that makes new weights; nothing is in place."""

import torch
from _truth import Truth
from torch import nn
from torch.func import functional_call, grad_and_value, vmap

torch.manual_seed(38)
torch.set_num_threads(1)
truth = Truth()
model = nn.Sequential(nn.Linear(16, 128), nn.Tanh(), nn.Linear(128, 1))
params = {k: v.detach().clone() for k, v in model.named_parameters()}


def compute_loss(params, x, y):
    return (functional_call(model, params, (x.unsqueeze(0),)) - y).square().mean()


per_sample = vmap(grad_and_value(compute_loss), in_dims=(None, 0, 0))
for step in range(1500):
    x = torch.randn(64, 16)
    grads, values = per_sample(params, x, x.sum(1, keepdim=True))
    params = {k: p - 0.02 * grads[k].mean(0) for k, p in params.items()}
    truth.step()
print(f"{values.mean().item():.6f}")
truth.tell(weights=list(params.values()), or_zero=True)
