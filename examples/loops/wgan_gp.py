"""WGAN with gradient penalty: five critic steps, then one of the generator; an endless loader."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

truth = Truth()


def infinite(loader):
    while True:
        yield from loader


def penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    with truth("forward"):
        score = critic(between)
    with truth("backward"):
        (slope,) = torch.autograd.grad(score.sum(), between, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def main():
    torch.manual_seed(18)
    torch.set_num_threads(1)
    G = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 32))
    C = nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 128), nn.Tanh(), nn.Linear(128, 1))
    optG, optC = (torch.optim.Adam(m.parameters(), 1e-4, betas=(0.0, 0.9)) for m in (G, C))
    data = infinite(DataLoader(TensorDataset(torch.randn(1280, 32)), batch_size=64, shuffle=True))
    for iteration in range(230):
        for _ in range(5):
            (real,) = next(data)
            with torch.no_grad(), truth("forward"):
                fake = G(torch.randn(64, 8))
            with truth("forward"):
                distance = C(fake).mean() - C(real).mean()
            loss = distance + 10 * penalty(C, real, fake)
            optC.zero_grad()
            with truth("backward"):
                loss.backward()
            with truth("optimizer"):
                optC.step()
            truth.step(64)
        with truth("forward"):
            lossG = -C(G(torch.randn(64, 8))).mean()
        optG.zero_grad()
        with truth("backward"):
            lossG.backward()
        with truth("optimizer"):
            optG.step()
    print("distance", distance.item(), "generator", lossG.item())
    truth.tell(weights=[G, C])


main()
