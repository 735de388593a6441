"""PPO in one file: a rollout, four epochs of minibatches; the model is called through methods."""

import torch
from _truth import Truth
from torch import nn
from torch.distributions import Categorical

truth = Truth()


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(
            nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
        )
        self.actor = nn.Sequential(
            nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4)
        )

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


torch.manual_seed(21)
torch.set_num_threads(1)
envs, length, agent = 8, 64, Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
observation = torch.randn(envs, 10)
for iteration in range(42):
    obs, actions, logprobs, rewards, values = [], [], [], [], []
    for step in range(length):
        obs.append(observation)
        with torch.no_grad(), truth("forward"):
            action, logprob, _, value = agent.get_action_and_value(observation)
        values.append(value.flatten())
        actions.append(action)
        logprobs.append(logprob)
        observation = 0.9 * observation + 0.3 * torch.randn(envs, 10)
        observation[:, 0] += action * 0.1
        rewards.append(-observation[:, 0].abs())
    with torch.no_grad():
        last = agent.get_value(observation).flatten()
    returns, running = [], last
    for r in reversed(rewards):
        running = r + 0.99 * running
        returns.insert(0, running)
    b_obs, b_actions = torch.cat(obs), torch.cat(actions)
    b_logprobs, b_returns = torch.cat(logprobs), torch.cat(returns)
    b_advantages = b_returns - torch.cat(values)
    for epoch in range(4):
        for mb in torch.randperm(envs * length).split(64):
            with truth("forward"):
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions[mb])
            ratio = (newlogprob - b_logprobs[mb]).exp()
            advantage = b_advantages[mb]
            policy_loss = torch.max(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.2)).mean()
            loss = (
                policy_loss - 0.01 * entropy.mean() + 0.5 * (newvalue.flatten() - b_returns[mb]).pow(2).mean()
            )
            optimizer.zero_grad()
            with truth("backward"):
                loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            with truth("optimizer"):
                optimizer.step()
            truth.step()
    if iteration % 5 == 0:
        print(f"iteration {iteration} return {b_returns.mean().item():.4f}")
truth.tell(weights=agent)
