"""Python runs this first in a process that `torchvitals run` started, and in those that one starts.

It steps aside for the sitecustomize that would have run without us, then waits for torch.
"""

import os
import sys


def _step_aside(here: str) -> None:
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        pass
    finally:
        # Python looks its newly imported module up once more.
        sys.modules.setdefault("sitecustomize", ours)


def _begin() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    _step_aside(here)
    if not os.environ.get("MONITOR_RUN_KEY"):
        return
    try:
        import monitor
    except ImportError:
        sys.path.append(os.path.dirname(os.path.dirname(here)))
        import monitor
    from monitor.probe.auto_attach import when_training_begins

    when_training_begins(monitor.attach)


try:
    _begin()
except Exception as error:  # noqa: BLE001 - the script runs, with us or without
    print(f"torchvitals: monitoring is off: {type(error).__name__}: {error}", file=sys.stderr)
