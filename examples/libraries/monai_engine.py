"""MONAI: SupervisedTrainer and SupervisedEvaluator, engines built on Ignite, with a validation handler."""

import json
import logging
import time

import torch
from monai.engines import SupervisedEvaluator, SupervisedTrainer
from monai.handlers import ValidationHandler
from monai.networks.nets import UNet
from torch.utils.data import DataLoader, Dataset

logging.disable(logging.CRITICAL)


class Volumes(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(n)
        self.images = torch.randn(n, 1, 32, 32, generator=g)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return {"image": self.images[i], "label": (self.images[i] > 0).float()}


torch.manual_seed(0)
torch.set_num_threads(1)
net = UNet(spatial_dims=2, in_channels=1, out_channels=1, channels=(8, 16, 32), strides=(2, 2))
optimizer, loss = torch.optim.Adam(net.parameters(), 1e-3), torch.nn.BCEWithLogitsLoss()
evaluator = SupervisedEvaluator("cpu", DataLoader(Volumes(64), batch_size=8), net)
trainer = SupervisedTrainer(
    "cpu",
    max_epochs=8,
    train_data_loader=DataLoader(Volumes(160), batch_size=8, shuffle=True),
    network=net,
    optimizer=optimizer,
    loss_function=loss,
    train_handlers=[ValidationHandler(1, evaluator)],
)
spent = {"eval": 0.0, "began": 0.0, "first": 0.0, "last": 0.0}


@evaluator.on("STARTED")
def started():
    spent["began"] = time.perf_counter()


@evaluator.on("COMPLETED")
def completed():
    if trainer.state.epoch < 8:
        spent["eval"] += time.perf_counter() - spent["began"]


@trainer.on("ITERATION_COMPLETED")
def iterated():
    spent["last"] = time.perf_counter()
    spent["first"] = spent["first"] or spent["last"]


trainer.run()
share = spent["eval"] / (spent["last"] - spent["first"])
told = {"steps": trainer.state.iteration, "samples": 1280, "epochs": 8, "findings": []}
print(json.dumps({**told, "shares": {"eval": round(share, 3)}}))
