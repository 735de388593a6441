"""x-transformers: the enwik8 loop: cycle(loader), four accumulated batches a step, validation, generation."""

import json
import time

import torch
from torch.utils.data import DataLoader, Dataset
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper


def cycle(loader):
    while True:
        yield from loader


class Text(Dataset):
    def __init__(self, seed):
        self.data = torch.randint(0, 64, (20_000,), generator=torch.Generator().manual_seed(seed))

    def __getitem__(self, index):
        start = torch.randint(0, len(self.data) - 33, (1,))
        return self.data[start : start + 33]

    def __len__(self):
        return len(self.data) // 32


torch.manual_seed(0)
torch.set_num_threads(1)
net = TransformerWrapper(num_tokens=64, max_seq_len=33, attn_layers=Decoder(dim=64, depth=2, heads=2))
model = AutoregressiveWrapper(net)
train, valid = (
    cycle(DataLoader(Text(0), batch_size=4, drop_last=True)),
    cycle(DataLoader(Text(1), batch_size=4)),
)
optim = torch.optim.Adam(model.parameters(), lr=1e-4)
spent = {"forward": 0.0, "backward": 0.0, "optimizer": 0.0, "eval": 0.0}
for i in range(90):
    if i == 1:
        began, spent = time.perf_counter(), dict.fromkeys(spent, 0.0)
    model.train()
    for _ in range(4):
        batch = next(train)
        a = time.perf_counter()
        loss = model(batch)
        b = time.perf_counter()
        (loss / 4).backward()
        spent["forward"], spent["backward"] = (
            spent["forward"] + b - a,
            spent["backward"] + time.perf_counter() - b,
        )
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    a = time.perf_counter()
    optim.step()
    spent["optimizer"] += time.perf_counter() - a
    optim.zero_grad()
    whole = time.perf_counter()
    kept = dict(spent)
    if i % 10 == 0:
        model.eval()
        with torch.no_grad():
            print("validation loss", model(next(valid)).item())
        spent["eval"] += time.perf_counter() - whole
    if i % 30 == 0:
        a = time.perf_counter()
        model.eval()
        model.generate(prompts=torch.zeros(1, 4, dtype=torch.long), seq_len=24, cache_kv=True)
        spent["eval"] += time.perf_counter() - a
shares = {name: round(took / (whole - began), 3) for name, took in kept.items()}
print(json.dumps({"steps": 90, "micro_batches": 360, "samples": 1440, "shares": shares, "findings": []}))
