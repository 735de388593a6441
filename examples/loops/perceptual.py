"""A perceptual loss: features of a frozen network, called layer by layer, gradients flow through it."""

import torch
from _truth import Truth
from torch import nn


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.slices = nn.ModuleList(
            nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU()) for i, o in ((3, 16), (16, 24), (24, 24))
        )
        self.requires_grad_(False)

    def forward(self, x):
        return [x := layer(x) for layer in self.slices]


class Transformer(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))


torch.manual_seed(35)
torch.set_num_threads(1)
truth, vgg, net = Truth(), Features(), Transformer()
style = [f.mean((2, 3)) for f in vgg(torch.rand(1, 3, 24, 24))]
optimizer = torch.optim.Adam(net.parameters())
images = torch.rand(512, 3, 24, 24)
for count in range(600):
    x = images[torch.randint(512, (8,))]
    with truth("forward"):
        y = net(x)
        features_y, features_x = vgg(y), vgg(x)
    content = nn.functional.mse_loss(features_y[1], features_x[1])
    loss = content + sum((f.mean((2, 3)) - s).square().mean() for f, s in zip(features_y, style))
    optimizer.zero_grad()
    with truth("backward"):
        loss.backward()
    with truth("optimizer"):
        optimizer.step()
    truth.step()
print(f"{content.item():.6f} {loss.item():.6f}")
truth.tell(weights=net)
