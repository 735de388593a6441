"""On-policy: a rollout with the policy in evaluation mode, then epochs of minibatches."""

import json

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
policy = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4))
value = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=3e-4)
updates, observation = 0, torch.randn(8)


def rollout(length):
    global observation
    policy.eval(), value.eval()
    rows = []
    with torch.no_grad():
        for _ in range(length):
            choice = torch.distributions.Categorical(logits=policy(observation))
            action = choice.sample()
            rows.append((observation, action, choice.log_prob(action), value(observation)[0]))
            observation = 0.95 * observation + 0.2 * torch.randn(8) + 0.01 * action
    return [torch.stack(column) for column in zip(*rows)]


def update(observations, actions, before, values):
    global updates
    policy.train(), value.train()
    returns = values.flip(0).cumsum(0).flip(0) / len(values)
    for _ in range(4):
        for index in torch.randperm(len(actions)).split(64):
            choice = torch.distributions.Categorical(logits=policy(observations[index]))
            ratio = (choice.log_prob(actions[index]) - before[index]).exp()
            advantage = returns[index] - values[index]
            loss = -(ratio.clamp(0.8, 1.2) * advantage).mean()
            loss = loss + (value(observations[index]).squeeze(1) - returns[index]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
            updates += 1


for _ in range(14):
    update(*rollout(512))
print(json.dumps({"steps": updates, "no_findings": True}))
