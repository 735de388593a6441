"""An agent acts, and learns every fourth step; a target network is copied now and then."""

import copy
import json
import random

import torch
from torch import nn


class Agent:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 3))
        self.target = copy.deepcopy(self.net).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.memory, self.learned = [], 0

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(3)
        self.net.eval()
        with torch.no_grad():
            values = self.net(state[None])
        self.net.train()
        return int(values.argmax())

    def learn(self):
        s, a, r, n = (torch.stack(x) for x in zip(*random.sample(self.memory, 64)))
        target = r + 0.95 * self.target(n).max(1).values
        loss = nn.functional.smooth_l1_loss(self.net(s).gather(1, a).squeeze(1), target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.learned += 1
        if self.learned % 50 == 0:
            self.target.load_state_dict(self.net.state_dict())


random.seed(0)
torch.manual_seed(0)
agent, state = Agent(), torch.zeros(6)
for t in range(4000):
    action = agent.act(state, 0.2)
    following = (state * 0.8 + torch.randn(6) * 0.3).clamp(-2, 2)
    agent.memory.append((state, torch.tensor([action]), following.sum(), following))
    state = following
    if t >= 200 and t % 4 == 0:
        agent.learn()
print(json.dumps({"steps": agent.learned, "no_findings": True}))
