"""pytorch-accelerated: Trainer.train over Accelerate, with accumulation and evaluation."""

import json
import time

import torch
from pytorch_accelerated import Trainer
from pytorch_accelerated.callbacks import TrainerCallback
from torch import nn
from torch.utils.data import TensorDataset


class Counter(TrainerCallback):
    batches = epochs = 0
    evaluated = began = first = last = 0.0

    def on_train_step_end(self, trainer, **kwargs):
        self.batches += 1
        self.last = time.perf_counter()
        self.first = self.first or self.last

    def on_eval_epoch_start(self, trainer, **kwargs):
        self.began = time.perf_counter()

    def on_eval_epoch_end(self, trainer, **kwargs):
        self.epochs += 1
        self.evaluated += (time.perf_counter() - self.began) if self.epochs < 12 else 0.0


torch.manual_seed(0)
torch.set_num_threads(1)
data = [TensorDataset(torch.randn(n, 64), torch.randint(0, 5, (n,))) for n in (1600, 800)]
net = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 5))
counter = Counter()
trainer = Trainer(net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.01), callbacks=[counter])
trainer.train(
    data[0],
    num_epochs=12,
    eval_dataset=data[1],
    per_device_batch_size=20,
    gradient_accumulation_steps=2,
    train_dataloader_kwargs={"num_workers": 0, "shuffle": True, "pin_memory": False},
    eval_dataloader_kwargs={"num_workers": 0, "pin_memory": False},
)
share = counter.evaluated / (counter.last - counter.first)
told = {
    "steps": 40 * 12,
    "micro_batches": counter.batches,
    "samples": 1600 * 12,
    "epochs": 12,
    "findings": [],
}
print(json.dumps({**told, "shares": {"eval": round(share, 3)}}))
