"""normflows: the loop of its README; forward_kld and sample are methods, the model is never called."""

import json
import time

import normflows as nf
import torch

torch.manual_seed(0)
torch.set_num_threads(1)
base = nf.distributions.base.DiagGaussian(2)
flows = []
for _ in range(8):
    param_map = nf.nets.MLP([1, 64, 64, 2], init_zeros=True)
    flows += [nf.flows.AffineCouplingBlock(param_map), nf.flows.Permute(2, mode="swap")]
model = nf.NormalizingFlow(base, flows)
target = nf.distributions.TwoMoons()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, weight_decay=1e-5)
spent = {"data": 0.0, "forward": 0.0, "backward": 0.0, "optimizer": 0.0}
began = time.perf_counter()
for it in range(300):
    optimizer.zero_grad()
    t0 = time.perf_counter()
    x = target.sample(256)
    t1 = time.perf_counter()
    loss = model.forward_kld(x)
    t2 = time.perf_counter()
    if not (torch.isnan(loss) | torch.isinf(loss)):
        t3 = time.perf_counter()
        loss.backward()
        t4 = time.perf_counter()
        optimizer.step()
        spent["backward"] += t4 - t3
        spent["optimizer"] += time.perf_counter() - t4
    spent["data"] += t1 - t0
    spent["forward"] += t2 - t1
whole = time.perf_counter() - began
shares = {name: round(took / whole, 3) for name, took in spent.items()}
print("loss", loss.item())
print(json.dumps({"steps": 300, "shares": shares, "findings": ["untracked_time"]}))
