"""PPO whose policy is in eval mode while it acts (dropout off), in train mode while it learns."""

import torch
from _truth import Truth
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

truth = Truth()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(12, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 128), nn.ReLU()
        )
        self.mean, self.value = nn.Linear(128, 3), nn.Linear(128, 1)

    def forward(self, x):
        h = self.body(x)
        return torch.distributions.Normal(self.mean(h), 0.5), self.value(h).squeeze(-1)


class PPO:
    def __init__(self):
        self.policy = Policy()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), 3e-4)

    @torch.no_grad()
    def collect(self, n=400):
        self.policy.eval()
        state, memory = torch.zeros(12), []
        for _ in range(n):
            with truth("forward"):
                pi, v = self.policy(state)
            action = pi.sample()
            new = 0.9 * state + 0.2 * torch.randn(12)
            new[:3] += 0.1 * action
            memory.append((state, action, pi.log_prob(action).sum(), -new.square().sum() - v))
            state = new
        return [torch.stack(column) for column in zip(*memory)]

    def learn(self, rollout):
        self.policy.train()
        for _ in range(5):
            for s, a, old, adv in DataLoader(TensorDataset(*rollout), batch_size=50, shuffle=True):
                with truth("forward"):
                    pi, v = self.policy(s)
                ratio = (pi.log_prob(a).sum(-1) - old).exp()
                loss = (
                    -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
                    + 0.5 * (v - adv).square().mean()
                )
                self.optimizer.zero_grad()
                with truth("backward"):
                    loss.backward()
                with truth("optimizer"):
                    self.optimizer.step()
                truth.step(len(s))
        return loss.item()


torch.manual_seed(22)
torch.set_num_threads(1)
ppo = PPO()
print([round(ppo.learn(ppo.collect()), 5) for _ in range(34)][-1])
truth.tell(weights=ppo.policy)
