"""Noise on both sides: no loader says where an iteration begins."""

import json

import torch
from torch import nn

torch.manual_seed(0)
gen, disc = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
optimizers = {"g": torch.optim.SGD(gen.parameters(), 0.01), "d": torch.optim.SGD(disc.parameters(), 0.01)}


def train_discriminator(real, fake):
    optimizers["d"].zero_grad()
    (disc(fake.detach()).mean() - disc(real).mean()).backward()
    optimizers["d"].step()


def train_generator(fake):
    optimizers["g"].zero_grad()
    (-disc(fake).mean()).backward()
    optimizers["g"].step()


for iteration in range(250):
    fake = gen(torch.randn(64, 2))
    train_discriminator(torch.randn(64, 2) + 3, fake)
    train_generator(gen(torch.randn(64, 2)))
print(json.dumps({"steps": 250}))
