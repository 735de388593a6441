"""DistributedDataParallel: what exchanging gradients costs, from its own log. No hook of ours is in it.

On CPU every backward pass is read as soon as it is over: what lies between the end of its arithmetic and the
end of its last all-reduce was waited for, and is taken out of the phase backward. On a GPU the host waits for
nothing there, and measuring would make it wait: only the iterations that torch itself measures are read,
after the fact, and told as a fact.
"""

from __future__ import annotations

import statistics
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from threading import get_ident
from typing import Any

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from monitor.probe import facts
from monitor.probe.batches import add
from monitor.probe.clock import BACKWARD, BEFORE, COMM
from monitor.probe.forward import Roots
from monitor.probe.patches import Patches
from monitor.probe.place import location, made_at, user_frame
from monitor.probe.recorder import COLLECTIVE_MB, COLLECTIVE_MS, SYNCS, Recorder
from monitor.tape.layout import LIVE_PHASE

#: Iterations between two that torch measures, unless it is told otherwise (kDDPRuntimeLoggingSampleRate).
TORCH_RATE = 100
#: On a GPU its log is looked at after each of so many backward passes, then after every GPU_EVERY-th.
GPU_FIRST, GPU_EVERY = 12, 10
#: Iterations measured by torch that a fact is made of.
SAMPLED = 25
#: Wrapped modules that are read (each costs 7 µs a backward pass).
WATCHED = 8


class Replica:
    """One wrapped module.

    Attributes:
        place: where it was wrapped.
        unused_bytes: parameters that got no gradient in some iteration; None where torch does not look.
        sampled: exposed, whole communication and arithmetic of backward in ns, where torch measured them.
    """

    def __init__(self, module: DistributedDataParallel, place: str | None) -> None:
        self.reference = weakref.ref(module)
        self.place = place
        self.on_cpu = module.device_type == "cpu"
        self.unused_bytes: int | None = None
        self.sampled: deque[tuple[int, int, int]] = deque(maxlen=SAMPLED)
        self._passes = 0
        if self.on_cpu:
            module.reducer._set_ddp_runtime_logging_sample_rate(1)
        self._newest = self._mark(self._read(module))

    @property
    def exchanges(self) -> bool:
        """Whether a backward pass that runs now exchanges gradients: it does not inside `no_sync()`."""
        module = self.reference()
        return module is not None and bool(module.require_backward_grad_sync)

    def exchanged(self) -> Mapping[str, int] | None:
        """Torch's log where gradients were exchanged since this was last asked; else None."""
        module = self.reference()
        if module is None:
            return None
        self._passes += 1
        if not self.on_cpu and self._passes > GPU_FIRST and self._passes % GPU_EVERY:
            return None
        log = self._read(module)
        mark = self._mark(log)
        if mark == self._newest:
            return None
        self._newest = mark
        if module.find_unused_parameters:
            self.unused_bytes = max(self.unused_bytes or 0, log.get("unused_parameter_size", 0))
        if not self.on_cpu:
            self.sampled.append((exposed_ns(log), log["backward_comm_time"], log["backward_compute_time"]))
        return log

    def fact(self) -> dict[str, Any] | None:
        """How it was set up and what was seen of it; None when it is gone."""
        module = self.reference()
        told = None if module is None else facts.ddp_facts(module)
        if module is None or told is None:
            return None
        if self.unused_bytes is not None:
            told["unused_parameter_size"] = self.unused_bytes
        log = module._get_ddp_logging_data()
        return {
            **told,
            **self._medians(),
            "world_size": log.get("world_size"),
            "gradient_mb": log.get("total_parameter_size_bytes", 0) / 1e6,
            "buckets": len(str(log.get("rebuilt_bucket_sizes") or log.get("bucket_sizes") or "").split(",")),
            "rebuilt_bucket_bytes": log.get("rebuilt_bucket_sizes"),
            "broadcast_buffers": bool(log.get("broadcast_buffers")),
            "comm_hook": log.get("comm_hook"),
            "device": module.device_type,
            "class": type(module.module).__name__,
            "location": self.place,
        }

    def restore(self) -> None:
        """Have torch measure as rarely as it does by itself."""
        module = self.reference()
        if module is not None and self.on_cpu:
            module.reducer._set_ddp_runtime_logging_sample_rate(TORCH_RATE)

    def _read(self, module: DistributedDataParallel) -> Mapping[str, int]:
        logger: Any = module.logger
        if self.on_cpu:
            # Torch does the same before the next forward pass. Only its averages count this iteration twice.
            logger.set_runtime_stats_and_log()
        log: Mapping[str, int] = logger._get_ddp_logging_data().ints_map
        return log

    def _mark(self, log: Mapping[str, int]) -> int:
        """On CPU the end of the newest exchange itself: an iteration may begin and exchange nothing."""
        return log.get("backward_comm_time_end" if self.on_cpu else "iteration", 0)

    def _medians(self) -> dict[str, float]:
        if not self.sampled:
            return {}
        names = ("exposed_ms", "comm_ms", "compute_ms")
        columns = zip(names, zip(*self.sampled, strict=True), strict=True)
        return {"sampled": len(self.sampled), **{n: statistics.median(c) / 1e6 for n, c in columns}}


class Ddp:
    """All wrapped modules of this process.

    Attributes:
        watched: those that are read; empty in most trainings.
        after_backward: after_backward() books what the newest backward pass waited for.
    """

    def __init__(self, recorder: Recorder, roots: Roots) -> None:
        self.recorder, self.roots = recorder, roots
        self.watched: list[Replica] = []
        self.after_backward = self._make_after_backward()

    def install(self, patches: Patches) -> None:
        """See every module that is wrapped from now on, and find those that are."""
        patches.replace(DistributedDataParallel, "__init__", self._made)
        patches.replace(DistributedDataParallel, "_sync_buffers", self._broadcast)
        patches.on_undo(self._restore)
        self.recorder.watchers += [self._find, self._tell]

    def _make_after_backward(self) -> Callable[[], None]:
        recorder, watched, told = self.recorder, self.watched, self.recorder.told
        move, values = recorder.clock.move, recorder.values
        exchanges = False

        def after_backward() -> None:
            nonlocal exchanges
            told.drifts = exchanges
            for replica in watched:
                log, syncs = replica.exchanged(), 0
                if replica.on_cpu and log is not None:
                    syncs += 1
                    move(BACKWARD, COMM, exposed_ns(log))
                    add(values, COLLECTIVE_MS, log["backward_comm_time"] / 1e6)
                    add(values, COLLECTIVE_MB, log["total_parameter_size_bytes"] / 1e6)
                elif not replica.on_cpu:
                    syncs += replica.exchanges
                if syncs:
                    told.drifts, exchanges = False, True
                add(values, SYNCS, syncs)

        return after_backward

    def _made(self, original: Callable[..., None]) -> Callable[..., None]:
        recorder = self.recorder

        def __init__(module: Any, /, *args: Any, **kwargs: Any) -> None:
            original(module, *args, **kwargs)
            if recorder.gate[0]:
                try:
                    self._watch(module, location(user_frame(2)))
                except Exception as error:  # noqa: BLE001 - the training must not notice
                    recorder.fail(error)

        return __init__

    def _broadcast(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Buffers (of batch norms) come from rank 0 before each forward pass, which waits for them."""
        recorder, clock, live = self.recorder, self.recorder.clock, self.recorder.tape.live

        def _sync_buffers(module: Any) -> Any:
            if get_ident() != recorder.gate[0] or live[LIVE_PHASE] == BEFORE:
                return original(module)
            depth = clock.push(COMM)
            try:
                return original(module)
            finally:
                clock.pop(depth)

        return _sync_buffers

    def _find(self) -> None:
        """Those that were wrapped before we came, wherever they are in a model."""
        known = {id(replica.reference()) for replica in self.watched}
        for root in self.roots.modules:
            for module in root.modules():
                if isinstance(module, DistributedDataParallel) and id(module) not in known:
                    made = made_at(module, type(module).__name__, user_frame(1)) or _named(module)
                    self._watch(module, made[0] if made else None)

    def _watch(self, module: DistributedDataParallel, place: str | None) -> None:
        self.watched[:] = [replica for replica in self.watched if replica.reference() is not None]
        if len(self.watched) < WATCHED and module.logger is not None:
            self.watched.append(Replica(module, place))

    def _tell(self) -> None:
        """The fact "ddp" is of the one with most parameters, where there are several."""
        told = [fact for replica in self.watched if (fact := replica.fact()) is not None]
        if told:
            self.recorder.fact("ddp", max(told, key=lambda fact: fact["gradient_mb"]))

    def _restore(self) -> None:
        for replica in self.watched:
            replica.restore()


def exposed_ns(log: Mapping[str, int]) -> int:
    """Nanoseconds from the end of a backward pass's arithmetic to the end of its last all-reduce."""
    return max(log.get("backward_comm_time", 0) - log.get("backward_compute_comm_overlap_time", 0), 0)


def _named(module: nn.Module) -> tuple[str, str | None] | None:
    """It is usually imported as DDP."""
    return made_at(module, "DDP", user_frame(2))
