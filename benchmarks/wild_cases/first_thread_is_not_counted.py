"""Two threads train: not the first one's steps are counted but the other's, from where it then was.

Right: docs/steps.md: "one is counted: the first that runs a backward pass or an optimizer": 400 steps.
Why:  probe/auto_attach.py, begin(): the triggers are taken back before attach() has run (some 50 ms), and
      meanwhile the second thread trains on unseen. Then probe/recorder.py:161, adopt(): `not self._adopted`
      lets whoever asks first after that take over; the thread whose call caused the attach has not asked yet.
"""

import sys

from _watch import watched


def work():
    from concurrent.futures import ThreadPoolExecutor

    import torch

    def trial(width):
        model = torch.nn.Linear(8, width)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(400):
            optimizer.zero_grad()
            model(torch.randn(16, 8)).square().mean().backward()
            optimizer.step()

    torch.set_num_threads(1)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(trial, (16, 32)))


if sys.argv[1:]:
    sys.exit(work())
report, _ = watched(__file__)
sys.exit(f"FAULT: {report['steps']} of 400 steps, {report['notices']}" if report["steps"] != 400 else 0)
