"""DQN as in the tutorial: select_action, a deque, optimize_model, soft update of the target network."""

import random
from collections import deque, namedtuple

import torch
from _truth import Truth
from torch import nn

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
truth = Truth()
random.seed(20)
torch.manual_seed(20)
torch.set_num_threads(1)


def network():
    return nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))


policy_net, target_net, memory = network(), network(), deque([], maxlen=3000)
target_net.load_state_dict(policy_net.state_dict())
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-4, amsgrad=True)


def select_action(state, step):
    if random.random() > 0.05 + 0.85 * 0.99**step:
        with torch.no_grad(), truth("forward"):
            values = policy_net(state)
        return values.max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(2)]])


def optimize_model():
    if len(memory) < 64:
        return
    batch = Transition(*zip(*random.sample(memory, 64)))
    states, actions = torch.cat(batch.state), torch.cat(batch.action)
    next_states = torch.cat(batch.next_state)
    with truth("forward"):
        values = policy_net(states)
    values = values.gather(1, actions)
    with torch.no_grad(), truth("forward"):
        future = target_net(next_states)
    future = future.max(1).values
    loss = nn.functional.smooth_l1_loss(values, (torch.cat(batch.reward) + 0.99 * future)[:, None])
    optimizer.zero_grad()
    with truth("backward"):
        loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    with truth("optimizer"):
        optimizer.step()
    truth.step()


for episode in range(40):
    state = torch.randn(1, 4) * 0.05
    for t in range(60):
        action = select_action(state, episode * 60 + t)
        following = state + 0.1 * torch.randn(1, 4) + 0.05 * (action - 0.5)
        memory.append(Transition(state, action, following, torch.tensor([1.0 - following.abs().max()])))
        state = following
        optimize_model()
        with torch.no_grad():
            for old, new in zip(target_net.parameters(), policy_net.parameters()):
                old.lerp_(new, 0.005)
print("state", [round(v, 4) for v in state[0].tolist()])
truth.tell(weights=policy_net)
