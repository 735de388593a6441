"""Batches are permuted slices of a tensor, as in nanoGPT's get_batch."""

import torch
from _truth import Truth
from torch import nn

torch.manual_seed(1337)
torch.set_num_threads(1)
block_size, batch_size, vocab = 32, 24, 65
corpus = torch.randint(vocab, (50_000,))
truth = Truth()


def get_batch():
    ix = torch.randint(len(corpus) - block_size, (batch_size,))
    x = torch.stack([corpus[i : i + block_size] for i in ix])
    y = torch.stack([corpus[i + 1 : i + 1 + block_size] for i in ix])
    return x, y


class Bigger(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocab, 96)
        self.body = nn.Sequential(nn.Linear(96, 384), nn.GELU(), nn.Linear(384, 96))
        self.head = nn.Linear(96, vocab, bias=False)

    def forward(self, idx, targets=None):
        x = self.wte(idx)
        logits = self.head(x + self.body(x))
        loss = None
        if targets is not None:
            loss = nn.functional.cross_entropy(logits.view(-1, vocab), targets.view(-1))
        return logits, loss


model = Bigger()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
for iter_num in range(350):
    with truth("data"):
        xb, yb = get_batch()
    with truth("forward"):
        logits, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    with truth("backward"):
        loss.backward()
    with truth("optimizer"):
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    truth.step()
print("loss", loss.item())
truth.tell(weights=model)
