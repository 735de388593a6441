"""Elsewhere: what the loop does outside every known phase, told from sampled stacks of the main thread."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from monitor.diagnosis.core.finding import Gain, gain_from_share
from monitor.diagnosis.core.window import Rank, Window
from monitor.diagnosis.signals.cuda_device import exposed_between
from monitor.diagnosis.signals.facts import facts_of, on_gpu
from monitor.diagnosis.signals.logging_names import logging_call, logs
from monitor.diagnosis.signals.robust import Values
from monitor.diagnosis.signals.training_steps import phase_ms, recent_steps, step_ms

Kind = Literal["logging", "sync", "unknown"]

#: Fewer samples than this say nothing (own: a line that takes 5 % of the time is seen twice in two looks
#: once in 400 runs).
SAMPLES = 2
#: Fewer samples than this promise nothing (own: at 30 a share of a half is known to within 0.18).
PROMISE_SAMPLES = 30

#: Libraries that do nothing but log or draw.
_LOG_FILE = re.compile(
    r"(?:^|[/\\])(?:wandb|tensorboard\w*|mlflow|comet_ml|neptune|aim|clearml|swanlab|trackio|logging|matplotlib|"
    r"rich|tqdm|loguru|structlog|prometheus_client)(?:[/\\.]|\Z)"
)
#: Libraries that talk to files and machines: logging only where the user's own code says so.
_OUTPUT_FILE = re.compile(
    r"(?:^|[/\\])(?:urllib3?|http|requests|httpx|aiohttp|websockets?|grpc|boto3|botocore|redis)(?:[/\\.]|\Z)|"
    r"(?:^|[/\\])(?:socket|ssl|smtplib|json[/\\]encoder)\.py\Z"
)

#: Tensors turned into Python numbers, one synchronisation (on a GPU) or one call (on a CPU) each.
_SYNC = re.compile(r"\.\s*(?:item|tolist|numpy|cpu)\s*\(|\.to\(\s*[\"']cpu|isfinite|isnan|\.any\(|\.all\(")
#: The same of a tensor; of a Python number it is nothing.
_CONVERTS = re.compile(r"(?<!\w)(?:float|int|bool)\s*\(")
#: How many there are of something: a Python number.
_COUNTS = re.compile(r"(?<!\w)len\s*\(|\.\s*(?:size|numel|dim)\s*\(|\.shape\b|batch_size")
_TORCH = re.compile(r"[/\\]torch[/\\]")
#: Torch's own code that reads values; what else of torch a line runs (a distribution, an optimizer) does not.
_READS = re.compile(r"[/\\]torch[/\\](?:(?:_tensor|_tensor_str|functional)\.py\Z|cuda[/\\])")


@dataclass(frozen=True)
class Loss:
    """Time a rank loses in one way.

    Attributes:
        rank: the rank, with the steps that may be judged.
        share: share of wall time, 0 to 1.
        least: the same, had one more sample shown something else: few samples prove less.
        ms: per step.
        samples: stacks that showed it.
        total: stacks taken, whatever they showed.
        location: "file.py:31" of the line seen most often.
        source: the text of that line.
        function: the function the time was spent in.
    """

    rank: Rank
    share: float
    least: float
    ms: float
    samples: int
    total: int
    location: str | None
    source: str
    function: str


def lost(window: Window, rank: Rank, kind: Kind) -> Loss | None:
    """What the rank loses to one kind of call outside the known phases; None without stacks to tell."""
    if not rank.count:
        return None
    events = window.events_of("other_stack", rank=rank.rank)
    frames = [one for one in (events[-1].get("frames") or () if events else ()) if isinstance(one, Mapping)]
    total = sum(_count(one) for one in frames)
    part = recent_steps(rank)
    if total < SAMPLES or not part.count:
        return None
    total = max(total, int(events[-1].get("total") or 0))
    gpu = any(on_gpu(model) for model in facts_of(rank, "model"))
    mine = [one for one in frames if kind_of(one, waits=gpu) == kind]
    if not mine:
        return None
    most, seen = max(mine, key=_count), sum(map(_count, mine))
    untracked, total_ms = float(untracked_ms(part).sum()), max(float(np.nansum(step_ms(part))), 1e-9)
    if kind == "logging":
        # What a host that is ahead of its GPU logs meanwhile costs nothing.
        untracked *= exposed_between(rank, untracked / part.count)
    location = f"{_base(most.get('file'))}:{most.get('line')}" if most.get("file") else None
    ours = "monitor/probe/" in str(most.get("leaf_file") or "")
    function = str((not ours and most.get("leaf_func")) or most.get("func") or "")
    return Loss(
        part, untracked * seen / total / total_ms, untracked * seen / (total + 1) / total_ms,
        untracked * seen / total / part.count, seen, total, location, str(most.get("source") or ""), function,
    )  # fmt: skip


def promised(loss: Loss, basis: str) -> Gain | None:
    """What removing a sampled loss would gain; None while too few samples tell."""
    return gain_from_share(loss.share, basis) if loss.total >= PROMISE_SAMPLES else None


def untracked_ms(rank: Rank) -> Values:
    """Time of every step in no known phase, garbage collection aside, shape [count]."""
    claimed = phase_ms(rank, "other") - np.nan_to_num(rank.column("gc_ms"))
    return np.asarray(np.maximum(claimed, 0.0), dtype=np.float64)


def kind_of(frame: Mapping[str, Any], *, waits: bool = False) -> Kind:
    """What the time goes into: numbers handed on, tensors turned into numbers, or neither is known.

    What the innermost function does decides. The user's line says so only where nothing else was called from
    it: `print(model.fit())` prints for a moment and trains for long.

    Args:
        frame: one of an `other_stack` event's.
        waits: reading a value waits for a GPU, so whatever else is on the line, that is what takes long.
    """
    source, function = str(frame.get("source") or ""), str(frame.get("func") or "")
    leaf, leaf_file = str(frame.get("leaf_func") or ""), str(frame.get("leaf_file") or "")
    in_torch = bool(_TORCH.search(leaf_file)) and "tensorboard" not in leaf_file
    own = leaf_file in ("", str(frame.get("file") or ""))
    if not in_torch and (_LOG_FILE.search(leaf_file) or logs(leaf) or logs(function)):
        return "logging"
    if logging_call(source) and (own or _OUTPUT_FILE.search(leaf_file)):
        return "logging"
    reads = bool(_READS.search(leaf_file))
    if (reads or (own and (waits or not _computes(source)))) and _SYNC.search(source):
        return "sync"
    return "sync" if reads and _CONVERTS.search(source) else "unknown"


def _computes(source: str) -> bool:
    """Whether a line computes with what it reads; `total += g * norm.item()` hardly reads."""
    try:
        tree = ast.parse(source.rstrip(":") if source.startswith("assert") else source)
    except SyntaxError:
        return False  # a part of a statement, or the head of a block
    return any(
        isinstance(node, ast.BinOp)
        and {bool(_SYNC.search(ast.unparse(side))) for side in (node.left, node.right)} == {True, False}
        and any(_is_computed(side) for side in (node.left, node.right))
        for node in ast.walk(tree)
    )


def _is_computed(side: ast.expr) -> bool:
    """Whether an operand is neither read nor plainly a number: a constant, a length, a size."""
    text = ast.unparse(side)
    return not (_SYNC.search(text) or isinstance(side, ast.Constant | ast.UnaryOp) or _COUNTS.search(text))


def worst(window: Window, kind: Kind, least: float) -> tuple[Loss, tuple[int, ...]] | None:
    """The largest loss of one kind over all ranks from the share `least` on, and the ranks that have one."""
    found = [one for number in sorted(window.ranks) if (one := lost(window, window.ranks[number], kind))]
    costly = [one for one in found if one.least >= least]
    if not costly:
        return None
    return max(costly, key=lambda one: one.share), tuple(one.rank.rank for one in costly)


def _count(frame: Mapping[str, Any]) -> int:
    return int(frame.get("count") or 0)


def _base(path: Any) -> str:
    return re.split(r"[/\\]", str(path))[-1]
