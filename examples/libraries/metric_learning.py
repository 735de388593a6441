"""pytorch-metric-learning: trainers.MetricLossOnly, trunk and embedder with an optimizer each."""

import json
import logging
import os

os.environ["TQDM_DISABLE"] = "1"
import torch
from pytorch_metric_learning import losses, miners, samplers, trainers
from torch import nn
from torch.utils.data import TensorDataset

logging.getLogger().setLevel(logging.ERROR)
torch.manual_seed(0)
torch.set_num_threads(1)
labels = torch.arange(2000) % 20
dataset = TensorDataset(torch.randn(2000, 48), labels)
models = {
    "trunk": nn.Sequential(nn.Linear(48, 384), nn.ReLU(), nn.Linear(384, 384)),
    "embedder": nn.Linear(384, 32),
}
optimizers = {f"{name}_optimizer": torch.optim.Adam(m.parameters(), 1e-4) for name, m in models.items()}
counted = {"steps": 0, "epochs": 0}


def after_iteration(trainer):
    counted["steps"] += 1


def after_epoch(trainer):
    counted["epochs"] += 1


trainer = trainers.MetricLossOnly(
    models,
    optimizers,
    40,
    {"metric_loss": losses.TripletMarginLoss()},
    dataset,
    mining_funcs={"tuple_miner": miners.MultiSimilarityMiner()},
    sampler=samplers.MPerClassSampler(labels, m=4, length_before_new_iter=2000),
    dataloader_num_workers=0,
    end_of_iteration_hook=after_iteration,
    end_of_epoch_hook=after_epoch,
)
trainer.train(num_epochs=12)
print(json.dumps({**counted, "samples": counted["steps"] * 40, "findings": []}))
