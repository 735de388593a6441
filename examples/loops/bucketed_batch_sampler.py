"""Sequences of like length in a batch: a BatchSampler of one's own, batches of different sizes, padding."""

import random

import torch
from _truth import Truth
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler


class Sentences(Dataset):
    def __init__(self):
        self.items = [torch.randint(1, 500, (random.randint(4, 30),)) for _ in range(900)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i], len(self.items[i]) % 3


class Buckets(Sampler):
    def __init__(self, lengths, tokens):
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        self.batches, batch = [], []
        for i in order:
            if (len(batch) + 1) * lengths[i] > tokens:
                self.batches.append(batch)
                batch = []
            batch.append(i)
        self.batches.append(batch)

    def __iter__(self):
        return iter(random.sample(self.batches, len(self.batches)))

    def __len__(self):
        return len(self.batches)


def collate(items):
    words, labels = zip(*items)
    return pad_sequence(words, batch_first=True), torch.tensor(labels)


random.seed(10)
torch.manual_seed(10)
torch.set_num_threads(1)
truth, data = Truth(), Sentences()
loader = DataLoader(data, batch_sampler=Buckets([len(s) for s in data.items], 600), collate_fn=collate)
embed, gru, head = nn.Embedding(500, 48, padding_idx=0), nn.GRU(48, 64, batch_first=True), nn.Linear(64, 3)
everything = nn.ModuleList([embed, gru, head])
optimizer = torch.optim.Adam(everything.parameters())
for epoch in range(22):
    for words, labels in loader:
        with truth("forward"):
            _, hidden = gru(embed(words))
            scores = head(hidden[-1])
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            optimizer.step()
        truth.step(len(words))
print(loss.item())
truth.tell(weights=everything, epochs=22)
