"""All of the data in every step, as graph networks do it; masks say what is trained on."""

import torch
import torch.nn.functional as F
from _truth import Truth
from torch import nn


class GCN(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(128, width), nn.Linear(width, 7)

    def forward(self, x, adjacency):
        x = F.relu(adjacency @ self.first(x))
        return adjacency @ self.second(F.dropout(x, training=self.training))


torch.manual_seed(5)
torch.set_num_threads(1)
n, truth = 1200, Truth()
x, y = torch.randn(n, 128), torch.randint(0, 7, (n,))
adjacency = (torch.rand(n, n) < 0.01).float()
adjacency = (adjacency + torch.eye(n)) / (adjacency.sum(1, keepdim=True) + 1)
train_mask, test_mask = torch.arange(n) < 800, torch.arange(n) >= 800
model = GCN(96)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


def train():
    model.train()
    optimizer.zero_grad()
    with truth("forward"):
        out = model(x, adjacency)
    loss = F.cross_entropy(out[train_mask], y[train_mask])
    with truth("backward"):
        loss.backward()
    with truth("optimizer"):
        optimizer.step()
    truth.step()
    return float(loss)


@torch.no_grad()
def test():
    model.eval()
    with truth("eval"):
        prediction = model(x, adjacency).argmax(dim=-1)
    return [int((prediction[m] == y[m]).sum()) / int(m.sum()) for m in (train_mask, test_mask)]


for epoch in range(1, 151):
    loss = train()
    accuracies = test()
    if epoch % 50 == 0:
        print(f"Epoch {epoch:03d} loss {loss:.4f}", accuracies)
truth.tell(weights=model)
