"""A loader made anew each epoch, over data that is drawn anew; written as a script without functions."""

import torch
from _truth import Truth
from torch.nn import Linear, Sequential, Tanh
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
torch.set_num_threads(1)
truth = Truth()
pinn = Sequential(Linear(2, 64), Tanh(), Linear(64, 64), Tanh(), Linear(64, 1))
adam = torch.optim.Adam(pinn.parameters(), 1e-3)
for epoch in range(30):
    points = torch.rand(2000, 2)
    for (p,) in DataLoader(TensorDataset(points), batch_size=50, shuffle=True):
        p = p.requires_grad_()
        with truth("forward"):
            u = pinn(p)
        with truth("backward"):
            (du,) = torch.autograd.grad(u.sum(), p, create_graph=True)
        residual = ((du[:, 0] + du[:, 1] - torch.sin(p[:, 0])) ** 2).mean()
        adam.zero_grad()
        with truth("backward"):
            residual.backward()
        with truth("optimizer"):
            adam.step()
        truth.step(len(p))
print("residual %.8f" % residual.item())
truth.tell(weights=pinn, epochs=30)
