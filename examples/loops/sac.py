"""Off-policy: critic, a delayed actor and a temperature, from a replay buffer."""

import json

import torch
from torch import nn

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
critic = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
log_alpha = torch.zeros(1, requires_grad=True)
opt_actor = torch.optim.Adam(actor.parameters(), 3e-4)
opt_critic = torch.optim.Adam(critic.parameters(), 3e-4)
opt_alpha = torch.optim.Adam([log_alpha], 3e-4)
replay, state, updates = [], torch.randn(4), 0
for t in range(500):
    with torch.no_grad():
        action = actor(state) + 0.1 * torch.randn(1)
    following = 0.9 * state + 0.1 * torch.randn(4)
    replay.append((state, action, -state.abs().sum().view(1), following))
    state = following
    if t < 50:
        continue
    batch = [replay[i] for i in torch.randint(len(replay), (32,))]
    s, a, r, n = (torch.stack(column) for column in zip(*batch))
    with torch.no_grad():
        target = r + 0.99 * critic(torch.cat([n, actor(n)], 1))
    loss = nn.functional.mse_loss(critic(torch.cat([s, a], 1)), target)
    opt_critic.zero_grad()
    loss.backward()
    opt_critic.step()
    updates += 1
    if t % 2 == 0:
        opt_actor.zero_grad()
        (-critic(torch.cat([s, actor(s)], 1)).mean()).backward()
        opt_actor.step()
        opt_alpha.zero_grad()
        (log_alpha.exp() * 0.1).sum().backward()
        opt_alpha.step()
print(json.dumps({"steps": updates}))
