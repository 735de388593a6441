"""Script: which code trains, and which variables tune the libraries below it: what tells two runs apart.

Of the script only a digest leaves the process; of variables only those known to tune, and never a secret.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping

#: A file longer than this is no script.
MOST_BYTES = 4_000_000
#: Variables that change how fast torch and the libraries below it run. None of these holds a secret.
TUNING = re.compile(
    r"(OMP|MKL|KMP|OPENBLAS|GOMP|NCCL|GLOO|UCX|TORCH|TORCHINDUCTOR|TORCHDYNAMO|PYTORCH|CUBLAS|CUDNN|CUDA|NVIDIA|HSA|"
    r"HIP|MIOPEN|MALLOC|TRITON)_[A-Z0-9_]+|TOKENIZERS_PARALLELISM|PYTHONHASHSEED|PYTHONOPTIMIZE|LD_PRELOAD"
)
#: Of these, what differs between two runs of one and the same thing: ids, places and addresses of a job.
_OF_THE_JOB = re.compile(
    r"(NCCL_COMM_ID|TORCHELASTIC_.*|.*_(DIR|PATH|HOME|FILE|RUN_ID|KEY|TOKEN|SECRET|PASSWORD|ADDR|PORT))"
)
#: Most variables told, and characters of one's value.
MOST_VARIABLES, MOST_CHARACTERS = 64, 200


def script_facts() -> dict[str, str] | None:
    """Name of the main script's file and a digest of its text; None where there is no such file.

    Read once, as the run begins: an edit made while it trains belongs to the next run.
    """
    path = sys.argv[0] if sys.argv else ""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MOST_BYTES:
            return None
        with open(path, "rb") as file:
            text = file.read()
    except (OSError, ValueError):
        return None
    return {"name": os.path.basename(path), "digest": hashlib.sha256(text).hexdigest()[:16]}


def variables(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Those variables of the environment that tune the libraries, by name."""
    names = [name for name in sorted(env) if TUNING.fullmatch(name) and not _OF_THE_JOB.fullmatch(name)]
    return {name: env[name][:MOST_CHARACTERS] for name in names[:MOST_VARIABLES]}
