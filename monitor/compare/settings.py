"""Settings: what a run was told and what was seen of it, as flat names → plain values, noise left out.

Noise is what differs between two runs of one and the same thing: process ids, ports, folders for output,
places in the code, counts and times that grow while a run lasts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from monitor.compare.side import Side

Flat = dict[str, Any]

#: Facts of which only these parts describe the configuration; of other facts everything that is no noise.
PARTS = {
    "model": "class parameters trainable dtypes device compiled data_parallel distributed_data_parallel "
    "conv_channels_last",
    "ddp": "find_unused_parameters static_graph gradient_as_bucket_view bucket_cap_mb has_sync_bn backend "
    "broadcast_buffers comm_hook",
    "precision": "autocast autocast_dtype autocast_device scaler scale_init matmul_precision "
    "backward_in_autocast clips clips_while_scaled",
    "env": "python torch cuda cpu_capability cpu_capabilities threads interop_threads usable_cpus "
    "omp_num_threads",
    "compile": "",  # what the compiler did, not what it was told
    "script": "",  # see `code`
}  # fmt: skip
#: Of these, which are counted while training: only whether there are any describes the configuration.
COUNTED = frozenset({"precision.clips", "precision.clips_while_scaled", "precision.backward_in_autocast"})
#: Facts that only appear once something happened, or not before some time has passed.
LATE = ("compile", "ddp", "precision", "threads", "anomaly_mode")

_NOISE = re.compile(
    r"(^|_)(location|place|pid|port|call|role|step|steps|seen|count|counts|iterations|started|url|fd)$|_(ms|mb|s|ns)$"
)
#: Options of a script that name where its output goes, or the run itself.
_OUTPUT = re.compile(
    r"(^|[-_])(out|output|outputs|save|log|logs|logging|ckpt|checkpoints?|tensorboard|result|results|run|exp|"
    r"experiment|work)[-_]?(dir|directory|path|folder|file|id|name)$"
    r"|^(out|output|name|tag|port|json)$|(^|[-_])(port|rdzv[-_].*)$",
    re.IGNORECASE,
)


def settings(side: Side) -> Flat:
    """Dotted names → values: `config.…`, `option.…` (of the command line), facts (`loader/1.num_workers`),
    `host`, `world_size`.
    """
    flat: Flat = {}
    for name, value in _nested(side.meta.get("config") or {}):
        flat[f"config.{name}"] = value
    for name, value in options(side.meta.get("argv") or ()).items():
        flat[f"option.{name}"] = value
    for name, fact in side.facts.items():
        flat.update(_of_fact(name, fact))
    hosts = side.meta.get("hosts") or ()
    flat["host"] = ", ".join(sorted(map(str, hosts))) or side.meta.get("host")
    flat["world_size"] = side.report["world_size"]
    return flat


def options(argv: Sequence[Any]) -> Flat:
    """A command line as option → value: `--lr 0.1` and `--lr=0.1` are the same, a bare option is True, other
    words are counted. The script's own folder does not matter.
    """
    out: Flat = {}
    words, index = [str(word) for word in argv], 0
    if words:
        out["script"] = os.path.basename(words[0])
    rest = iter(range(1, len(words)))
    for i in rest:
        word = words[i]
        if not _is_option(word):
            index += 1
            out[f"argument {index}"] = word
            continue
        name, equals, value = word.lstrip("-").partition("=")
        follows = i + 1 < len(words) and not _is_option(words[i + 1])
        if not equals and follows:
            next(rest)
        if not _OUTPUT.search(name):
            out[name] = value if equals else words[i + 1] if follows else True
    return out


def code(before: Side, after: Side) -> dict[str, Any]:
    """The scripts: `name`, and `edited`: whether they differ; null where one of them is not known."""
    scripts = [side.facts.get("script") or {} for side in (before, after)]
    digests = [script.get("digest") for script in scripts]
    names = [script.get("name") for script in scripts]
    return {"name": names[1] or names[0], "edited": None if None in digests else digests[0] != digests[1]}


def _is_option(word: str) -> bool:
    """Whether a word is an option; "-0.5" is a number."""
    return word.startswith("-") and len(word) > 1 and not re.match(r"-\.?\d", word)


def _of_fact(name: str, fact: Any) -> Iterator[tuple[str, Any]]:
    parts = PARTS.get(name.split("/")[0])
    for key, value in _nested(fact if isinstance(fact, Mapping) else {"": fact}):
        full = f"{name}.{key}".rstrip(".")
        top = key.split(".")[0]
        if parts is not None and top not in parts.split():
            continue
        if _NOISE.search(top) or _NOISE.search(key):
            continue
        # Of counts per type only the types: how many there are follows from the model's size.
        if top in ("dtypes", "param_dtypes") and isinstance(fact[top], Mapping):
            yield f"{name}.{top}", ", ".join(sorted(map(str, fact[top])))
        elif full in COUNTED:
            yield full, bool(value)
        else:
            yield full, value


def _nested(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping) and value:
            yield from _nested(value, f"{name}.")
        else:
            yield name, value
