"""k folds: SubsetRandomSampler over one data set, a fresh model in each fold."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

torch.manual_seed(26)
torch.set_num_threads(1)
truth, k = Truth(), 4
dataset = TensorDataset(torch.randn(1200, 48), torch.randint(0, 3, (1200,)))
order = torch.randperm(1200).view(k, -1)
scores = {}
for fold in range(k):
    held = order[fold].tolist()
    rest = torch.cat([order[i] for i in range(k) if i != fold]).tolist()
    trainloader = DataLoader(dataset, batch_size=30, sampler=SubsetRandomSampler(rest))
    testloader = DataLoader(dataset, batch_size=60, sampler=SubsetRandomSampler(held))
    model = nn.Sequential(nn.Linear(48, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 3))
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    for epoch in range(16 - fold):
        model.train()
        for inputs, targets in trainloader:
            optimizer.zero_grad()
            with truth("forward"):
                outputs = model(inputs)
            loss = nn.functional.cross_entropy(outputs, targets)
            with truth("backward"):
                loss.backward()
            with truth("optimizer"):
                optimizer.step()
            truth.step(len(inputs))
        model.eval()
        with truth("eval"), torch.no_grad():
            hits = sum((model(a).argmax(1) == b).sum().item() for a, b in testloader)
        scores[fold] = 100 * hits / 300
print("folds", scores)
truth.tell(weights=model)
