"""One garbage collection of some 150 ms in a run of a second: "step_outliers", 1.2 times as fast without it.

Right: nothing. One pause is no pattern (step_outliers.py: SEVERAL = 3, SECONDS = 0.5 say so of every other
       cause). Opacus's example does it by itself (one gen-2 collection at step 78 of 350).
Why:  diagnosis/detectors/time/step_outliers.py, _judge: `if collecting >= GC_SHARE: return ...` comes
      before SEVERAL and SECONDS are asked. Its evidence then says slow_ms_max 6.0 for a step of 160 ms
      (work_ms leaves gc out).
"""

import sys

from _watch import watched


def work():
    import gc

    import torch

    torch.set_num_threads(1)
    kept = [[i] for i in range(800_000)]
    gc.disable()
    model = torch.nn.Linear(128, 128)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1500):
        optimizer.zero_grad()
        model(torch.randn(64, 128)).square().mean().backward()
        optimizer.step()
        if step == 700:
            gc.collect()
    return 0 * len(kept)


if sys.argv[1:]:
    sys.exit(work())
report, rows = watched(__file__)
loud = [f for f in report["findings"] if f["code"] == "step_outliers"]
sys.exit(f"FAULT: {loud[0]['cause']}, {loud[0]['evidence']}, {loud[0]['gain']}" if loud else 0)
