"""No optimizer: with torch.no_grad(): p -= lr * p.grad, as in "what is torch.nn really"."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(37)
torch.set_num_threads(1)
truth, lr = Truth(), 0.05


class Logistic(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(784, 256)
        self.out = nn.Linear(256, 10)

    def forward(self, xb):
        return self.out(self.hidden(xb).relu())


train_dl = DataLoader(TensorDataset(torch.randn(2560, 784), torch.randint(0, 10, (2560,))), batch_size=64)
model = Logistic()
for epoch in range(90):
    for xb, yb in train_dl:
        with truth("forward"):
            pred = model(xb)
        loss = nn.functional.cross_entropy(pred, yb)
        with truth("backward"):
            loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= p.grad * lr
            model.zero_grad()
        truth.step(len(xb))
print(loss.item())
truth.tell(weights=model, epochs=90)
