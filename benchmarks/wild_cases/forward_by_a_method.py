"""model.loss(batch): the arithmetic of the model's own method is `other`; only its parts' calls are forward.

Right: forward as measured around the call (CONTRACT and issue 14: "through methods of the model's own"),
       or null.
Why:  probe/forward.py times `Module.__call__` alone (ModuleHooks._wrap, Learner._ask): outermost calls are
      the parts here. `forward` is made null only where it is 0 (report/measure.py:76).
"""

import sys

from _watch import watched


def work():
    import json
    import time

    import torch
    from torch import nn

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.actor, self.critic = nn.Linear(10, 4), nn.Linear(10, 1)

        def get_action_and_value(self, x, action):
            probs = torch.distributions.Categorical(logits=self.actor(x))
            return probs.log_prob(action), probs.entropy(), self.critic(x)

    torch.set_num_threads(1)
    agent, spent = Agent(), 0.0
    optimizer = torch.optim.SGD(agent.parameters(), lr=0.01)
    x, action, began = torch.randn(64, 10), torch.randint(0, 4, (64,)), time.perf_counter()
    for _ in range(3000):
        t = time.perf_counter()
        a, b, c = agent.get_action_and_value(x, action)
        spent += time.perf_counter() - t
        optimizer.zero_grad()
        (a.mean() + b.mean() + c.mean()).backward()
        optimizer.step()
    with open(__file__ + ".told", "w") as file:
        json.dump(spent / (time.perf_counter() - began), file)


if sys.argv[1:]:
    sys.exit(work())
report, _ = watched(__file__)
with open(__file__ + ".told") as file:
    by_hand = float(file.read())
ours = report["time_share"]["forward"]
off = ours is not None and abs(ours - by_hand) > 0.05
sys.exit(f"FAULT: forward {ours:.2f}, by hand {by_hand:.2f}" if off else 0)
