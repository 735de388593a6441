"""TD3: twin critics each step, the actor every second one, and a temperature with it; soft targets."""

import copy

import torch
import torch.nn.functional as F
from _truth import Truth
from torch import nn

truth = Truth()


class Replay:
    def __init__(self, size):
        self.state, self.next = torch.zeros(size, 8), torch.zeros(size, 8)
        self.action, self.reward, self.n, self.size = torch.zeros(size, 2), torch.zeros(size, 1), 0, size

    def add(self, s, a, r, s2):
        i = self.n % self.size
        self.state[i], self.action[i], self.reward[i], self.next[i] = s, a, r, s2
        self.n += 1

    def sample(self, k):
        i = torch.randint(0, min(self.n, self.size), (k,))
        return self.state[i], self.action[i], self.reward[i], self.next[i]


class TD3:
    def __init__(self):
        self.actor = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 2), nn.Tanh())
        self.q1, self.q2 = (
            nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
            for _ in range(2)
        )
        self.targets = [copy.deepcopy(m) for m in (self.actor, self.q1, self.q2)]
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.opt_actor = torch.optim.Adam(self.actor.parameters(), 3e-4)
        self.opt_q = torch.optim.Adam([*self.q1.parameters(), *self.q2.parameters()], 3e-4)
        self.opt_alpha = torch.optim.Adam([self.log_alpha], 3e-4)
        self.updates = 0

    def update(self, s, a, r, s2):
        with torch.no_grad(), truth("forward"):
            a2 = self.targets[0](s2)
            joint = torch.cat([s2, a2], 1)
            target = r + 0.99 * torch.min(self.targets[1](joint), self.targets[2](joint))
        joint = torch.cat([s, a], 1)
        with truth("forward"):
            v1, v2 = self.q1(joint), self.q2(joint)
        loss = F.mse_loss(v1, target) + F.mse_loss(v2, target)
        self.opt_q.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            self.opt_q.step()
        self.updates += 1
        if self.updates % 2 == 0:
            self.update_actor(s)
        truth.step()

    def update_actor(self, s):
        with truth("forward"):
            a = self.actor(s)
            value = self.q1(torch.cat([s, a], 1))
        loss = -value.mean() + self.log_alpha.exp().detach() * a.square().mean()
        self.opt_actor.zero_grad()
        with truth("backward"):
            loss.backward()
        with truth("optimizer"):
            self.opt_actor.step()
        alpha_loss = -(self.log_alpha * (a.detach().abs().mean() - 0.5))
        self.opt_alpha.zero_grad()
        with truth("backward"):
            alpha_loss.backward()
        with truth("optimizer"):
            self.opt_alpha.step()
        with torch.no_grad():
            for old, new in zip(self.targets, (self.actor, self.q1, self.q2)):
                for p, q in zip(old.parameters(), new.parameters()):
                    p.mul_(0.995).add_(q, alpha=0.005)


torch.manual_seed(19)
torch.set_num_threads(1)
agent, replay, state = TD3(), Replay(5000), torch.randn(8)
for t in range(1800):
    with torch.no_grad(), truth("forward"):
        action = (agent.actor(state) + 0.1 * torch.randn(2)).clamp(-1, 1)
    following = 0.95 * state + 0.1 * torch.randn(8)
    following[:2] += 0.1 * action
    replay.add(state, action, -following.square().sum(), following)
    state = following
    if t >= 150:
        agent.update(*replay.sample(128))
print("updates", agent.updates, "alpha", agent.log_alpha.exp().item())
truth.tell(weights=[agent.actor, agent.q1, agent.q2])
