"""A critic that is trained five times for each step of the generator."""

import json

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
generator = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 3))
opt_c = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
opt_g = torch.optim.RMSprop(generator.parameters(), lr=5e-5)
critic_steps = 0
for iteration in range(60):
    for _ in range(5):
        opt_c.zero_grad()
        (critic(generator(torch.randn(32, 3)).detach()).mean() - critic(torch.randn(32, 3)).mean()).backward()
        opt_c.step()
        for p in critic.parameters():
            p.data.clamp_(-0.01, 0.01)
        critic_steps += 1
    opt_g.zero_grad()
    (-critic(generator(torch.randn(32, 3))).mean()).backward()
    opt_g.step()
print(json.dumps({"steps": critic_steps}))
