"""One batch, fetched once with next(iter(loader)), trained on 300 times."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
torch.set_num_threads(1)
truth = Truth()
layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
model = nn.Sequential(nn.Embedding(100, 64), layer, nn.Linear(64, 100))
tokens = TensorDataset(torch.randint(0, 100, (256, 24)))
(batch,) = next(iter(DataLoader(tokens, batch_size=16, shuffle=True)))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
for it in range(300):
    with truth("forward"):
        logits = model(batch[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    with truth("backward"):
        loss.backward()
    with truth("optimizer"):
        optimizer.step()
    truth.step()
    if it % 100 == 0:
        print(it, loss.item())
truth.tell(weights=model, micro_batches=300)
