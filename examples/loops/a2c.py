"""A2C: sixteen steps in parallel environments with gradients kept, then one update."""

import torch
from _truth import Truth
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(20, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.pi, self.v = nn.Linear(256, 5), nn.Linear(256, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.pi(h), self.v(h)[:, 0]


def environment(n):
    state = torch.randn(n, 20)
    while True:
        action = yield state
        state = 0.95 * state + 0.1 * torch.randn(n, 20)
        state[:, 0] += 0.1 * (action - 2)


torch.manual_seed(23)
torch.set_num_threads(1)
truth, model = Truth(), ActorCritic()
optimizer = torch.optim.RMSprop(model.parameters(), lr=7e-4)
env = environment(16)
state = next(env)
for update in range(380):
    log_probs, values, rewards, entropy = [], [], [], 0.0
    for _ in range(16):
        with truth("forward"):
            logits, value = model(state)
        dist = torch.distributions.Categorical(logits=logits)
        action = dist.sample()
        state = env.send(action)
        log_probs.append(dist.log_prob(action))
        values.append(value)
        rewards.append(-state[:, 0].abs())
        entropy = entropy + dist.entropy().mean()
    with torch.no_grad(), truth("forward"):
        running = model(state)[1]
    loss = -0.01 * entropy
    for lp, v, r in zip(log_probs[::-1], values[::-1], rewards[::-1]):
        running = r + 0.99 * running
        advantage = running - v
        loss = loss - (lp * advantage.detach()).mean() + 0.5 * advantage.square().mean()
    optimizer.zero_grad()
    with truth("backward"):
        loss.backward()
    with truth("optimizer"):
        optimizer.step()
    truth.step()
print(f"{loss.item():.6f}")
truth.tell(weights=model)
