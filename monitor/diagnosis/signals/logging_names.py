"""Whether a function is logging, told by what it is called."""

from __future__ import annotations

import re

#: A word of a name that says so …
_WORDS = frozenset(
    (
        "log logs logger logging metric metrics track tracker report reporter telemetry publish notify "
        "upload print savefig imsave writerow writerows dashboard tensorboard wandb mlflow"
    ).split()
)

#: … unless the name also says that it computes.
_COMPUTES = frozenset(
    (
        "compute calc calculate update eval evaluate accuracy reset forward softmax sigmoid prob probs "
        "likelihood"
    ).split()
)

#: Whole names that say so, where a word of them alone would not.
_NAMES = frozenset(
    (
        "write writelines flush fsync dump post sendall emit add_scalar add_scalars add_histogram "
        "add_image add_images add_text add_figure set_postfix"
    ).split()
)

#: Objects whose every call says so.
_OWNERS = frozenset(
    ("log logger logging tracker wandb mlflow writer tensorboard tb neptune comet telemetry").split()
)

#: Their calls are arithmetic.
_MATHS_OWNERS = frozenset({"torch", "math", "np", "numpy", "F", "functional"})

_CALL = re.compile(r"([A-Za-z_][\w.]*)\s*\((\s*\))?")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def logs(name: str) -> bool:
    """Whether a function of this name logs: `log_metrics` and `pushMetrics` do, `compute_logits` does not."""
    words = {word.lower() for word in _WORD.findall(name)}
    return name in _NAMES or bool(words & _WORDS and not words & _COMPUTES)


def logging_call(source: str) -> bool:
    """Whether a line of code calls something that logs; logarithms do not."""
    for path, empty in _CALL.findall(source):
        *owners, name = path.split(".")
        if set(owners) & _MATHS_OWNERS or (name == "log" and empty):
            continue
        if logs(name) or (owners and owners[-1].lower() in _OWNERS):
            return True
    return False
