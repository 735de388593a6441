"""Training from a loader, evaluation over slices of a tensor, in a function decorated with no_grad."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(33)
torch.set_num_threads(1)
truth = Truth()
Xv, yv = torch.randn(1500, 60), torch.randint(0, 5, (1500,))
net = nn.Sequential(
    nn.Linear(60, 400), nn.ReLU(), nn.Dropout(), nn.Linear(400, 200), nn.ReLU(), nn.Linear(200, 5)
)
opt = torch.optim.Adam(net.parameters())


@torch.no_grad()
def accuracy(batch=250):
    net.eval()
    hits = sum((net(a).argmax(1) == b).sum() for a, b in zip(Xv.split(batch), yv.split(batch)))
    net.train()
    return hits.item() / len(Xv)


history = []
for epoch in range(50):
    for x, y in DataLoader(TensorDataset(torch.randn(900, 60), torch.randint(0, 5, (900,))), batch_size=25):
        opt.zero_grad()
        with truth("forward"):
            logits = net(x)
        loss = nn.functional.cross_entropy(logits, y)
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            opt.step()
        truth.step(len(x))
    with truth("eval"):
        history.append(accuracy())
print(history)
truth.tell(weights=net, epochs=50)
