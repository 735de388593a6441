"""After each epoch the accuracy on the training data, from the very loader that is trained from, then on test
data.
"""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

truth = Truth()


def check_accuracy(loader, model):
    num_correct = num_samples = 0
    model.eval()
    with truth("eval"), torch.no_grad():
        for x, y in loader:
            scores = model(x)
            num_correct += (scores.argmax(1) == y).sum()
            num_samples += len(y)
    model.train()
    return f"{num_correct}/{num_samples}"


torch.manual_seed(53)
torch.set_num_threads(1)
train_loader, test_loader = (
    DataLoader(TensorDataset(torch.randn(n, 90), torch.randint(0, 4, (n,))), batch_size=32, shuffle=True)
    for n in (1280, 320)
)
model = nn.Sequential(nn.Linear(90, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(24):
    for data, targets in train_loader:
        with truth("forward"):
            scores = model(data)
        loss = nn.functional.cross_entropy(scores, targets)
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step(len(data))
    print(epoch, check_accuracy(train_loader, model), check_accuracy(test_loader, model))
truth.tell(weights=model, epochs=24)
