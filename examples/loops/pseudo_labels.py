"""Self-training: before each epoch the unlabelled pool is labelled by the model, then both are trained on."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

torch.manual_seed(60)
torch.set_num_threads(1)
truth = Truth()
labelled = TensorDataset(torch.randn(400, 72), torch.randint(0, 3, (400,)))
pool = TensorDataset(torch.randn(1200, 72))
model = nn.Sequential(nn.Linear(72, 512), nn.ReLU(), nn.Linear(512, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


@torch.no_grad()
def label_pool(threshold=0.4):
    model.eval()
    xs, ys = [], []
    for (x,) in DataLoader(pool, batch_size=60):
        confidence, guess = model(x).softmax(1).max(1)
        keep = confidence > threshold
        xs.append(x[keep])
        ys.append(guess[keep])
    model.train()
    return TensorDataset(torch.cat(xs), torch.cat(ys))


for epoch in range(30):
    with truth("eval"):  # inference, though no evaluation
        pseudo = label_pool()
    for x, y in DataLoader(ConcatDataset([labelled, pseudo]), batch_size=32, shuffle=True):
        with truth("forward"):
            out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step(len(x))
print(len(pseudo), loss.item())
truth.tell(weights=model, epochs=30)
