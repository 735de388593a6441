"""DCGAN as in the tutorial: discriminator on real, on fake (two backward passes), then the generator."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)
torch.set_num_threads(1)
truth = Truth()
netG = nn.Sequential(
    nn.ConvTranspose2d(16, 32, 4, 1, 0),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.ConvTranspose2d(32, 16, 4, 2, 1),
    nn.ReLU(),
    nn.ConvTranspose2d(16, 1, 4, 2, 1),
    nn.Tanh(),
)
netD = nn.Sequential(
    nn.Conv2d(1, 16, 4, 2, 1),
    nn.LeakyReLU(0.2),
    nn.Conv2d(16, 32, 4, 2, 1),
    nn.LeakyReLU(0.2),
    nn.Conv2d(32, 1, 4),
    nn.Flatten(),
    nn.Sigmoid(),
)
criterion = nn.BCELoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
dataloader = DataLoader(TensorDataset(torch.randn(1600, 1, 16, 16)), batch_size=32, shuffle=True)
for epoch in range(9):
    for i, (real,) in enumerate(dataloader):
        netD.zero_grad()
        label = torch.ones(real.size(0), 1)
        with truth("forward"):
            output = netD(real)
        errD_real = criterion(output, label)
        with truth("backward"):
            errD_real.backward()
        noise = torch.randn(real.size(0), 16, 1, 1)
        with truth("forward"):
            fake = netG(noise)
            output = netD(fake.detach())
        errD_fake = criterion(output, label.fill_(0))
        with truth("backward"):
            errD_fake.backward()
        with truth("optimizer"):
            optimizerD.step()
        netG.zero_grad()
        with truth("forward"):
            output = netD(fake)
        errG = criterion(output, label.fill_(1))
        with truth("backward"):
            errG.backward()
        with truth("optimizer"):
            optimizerG.step()
        truth.step(real.size(0))
        if i % 25 == 0:
            print(f"[{epoch}][{i}] Loss_D {(errD_real + errD_fake).item():.4f} Loss_G {errG.item():.4f}")
truth.tell(weights=[netG, netD], epochs=9)
