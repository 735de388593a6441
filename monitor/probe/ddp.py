"""DistributedDataParallel: what exchanging gradients costs, from what its reducer notes anyway.

On CPU a backward pass ends when the gradients are exchanged, and the reducer knows when each of them was
ready. What lies between the last one and the end was waited for, and is taken out of the phase backward. (Its
log says nearly the same, but only of iterations that torch measures: that cost 50 µs in each, this none.)
On a GPU the host waits for nothing there, and measuring would make it wait: only the iterations that torch
itself measures are read, after the fact, and told as a fact. So is a module behind whose last gradient the
pass still has much to do, for parts that are not wrapped: there the reducer cannot tell that from waiting.
"""

from __future__ import annotations

import statistics
import time
import weakref
from collections import deque
from collections.abc import Callable
from operator import eq
from threading import get_ident
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from monitor.probe import facts, torch_compat
from monitor.probe.batches import add
from monitor.probe.clock import BACKWARD, BEFORE, COMM
from monitor.probe.ddp_log import exposed_ns, first_bucket, measure_every, sent
from monitor.probe.forward import ModuleHooks
from monitor.probe.patches import Patches
from monitor.probe.recorder import COLLECTIVE_MB, COLLECTIVE_MS, SYNCS, Recorder
from monitor.probe.source_location import location, made_at, user_frame
from monitor.tape.layout import LIVE_PHASE, LIVE_SINCE_NS

#: Iterations between two that torch measures, unless it is told otherwise (kDDPRuntimeLoggingSampleRate).
TORCH_RATE = 100
#: A module's log is looked at in each of so many backward passes, then in every EVERY-th.
FIRST, EVERY = 12, 10
#: Iterations that torch measures at first, before it does so in every hundredth only (reducer.hpp).
MEASURED = 10
#: Copying the last gradient into its bucket takes no longer, in ns: some, and so many a byte (1 GB/s). Where
#: torch measured more in every pass it is other arithmetic (27 to 45 ms were seen, and 0.1 to 4 of copying).
COPY_NS, BYTE_NS = 5_000_000, 1.0
#: Iterations measured by torch that a fact is made of.
SAMPLED = 25
#: Wrapped modules that are read.
WATCHED = 8
#: Of so many gradients one may have taken as long as in the pass before, by chance.
MOST_EQUAL = 32


class Replica:
    """One wrapped module.

    Attributes:
        reference, number: the module, as long as it lives, and its identity.
        place: where it was wrapped.
        on_cpu: its reducer times gradients where they are ready, and not where they are enqueued.
        waits: a pass has nothing left to do but to wait once this module's last gradient is in its bucket.
        passes: backward passes so far, this one included.
        closely: its log is read in every pass.
        gradient_mb: of all gradients together.
        unused_bytes: parameters that got no gradient in some iteration; None where torch does not look.
        sampled: exposed, whole communication and arithmetic of backward in ns, where torch measured them.
    """

    def __init__(self, module: DistributedDataParallel, place: str | None) -> None:
        self.reference = weakref.ref(module)
        self.number = id(module)
        self.place = place
        self.on_cpu = self.waits = module.device_type == "cpu"
        self.unused_bytes: int | None = None
        self.sampled: deque[tuple[int, int, int]] = deque(maxlen=SAMPLED)
        self._read_log = torch_compat.value(torch_compat.DDP_LOGGER)
        self._backward_stats = torch_compat.value(torch_compat.DDP_BACKWARD_STATS)
        log = self._read_log(module.logger)
        self.gradient_mb = log.ints_map.get("total_parameter_size_bytes", 0) / 1e6
        self._iteration = log.ints_map.get("iteration", 0)
        self._ready = self._backward_stats(module.reducer)
        self._lags: deque[int] = deque(maxlen=SAMPLED)
        # It is not known yet, but will be after the next iteration; or never.
        self._lag = None if self._iteration < MEASURED else 0
        self.passes = 0
        # Which parameters are left out may change with every pass, and only the log tells. Where torch looks
        # for them the time that its log takes is small beside that.
        self.closely = self.on_cpu and bool(module.find_unused_parameters)
        if self.closely:
            measure_every(module, 1)
        self._copy_ns = COPY_NS + BYTE_NS * max((p.nbytes for p in sent(module)), default=0)
        self._first = first_bucket(module, log.strs_map)

    def ready_ns(self, module: DistributedDataParallel, began: int) -> tuple[int | None, int | None] | None:
        """When the last gradient was in its bucket, and when those of the bucket were that goes ahead.

        Args:
            module: the one that it refers to.
            began: when the forward pass before it ended.

        None where the newest backward pass did not complete an exchange. None as well for either moment where
        it is not known.
        """
        if not began:
            return None
        ready, before = self._backward_stats(module.reducer), self._ready
        # A pass through a part of it leaves the others' times as they were: 0 after buckets were put together
        # anew. Two may be equal by chance.
        if not min(ready) or ((equal := sum(map(eq, ready, before))) and self._partial(module, ready, equal)):
            return None
        self._ready = ready
        first = began + max(map(ready.__getitem__, self._first)) if self._first else None
        known = self.waits and self._lag is not None
        return began + max(ready) + (self._lag or 0) if known else None, first

    def _partial(self, module: DistributedDataParallel, ready: list[int], equal: int) -> bool:
        """Whether the pass left out those that took as long as before: too many, or one has no gradient."""
        same, travels = map(eq, ready, self._ready), list(sent(module))
        lacks = (
            is_same and parameter.grad is None for parameter, is_same in zip(travels, same, strict=False)
        )
        return equal > len(ready) // MOST_EQUAL or (len(travels) == len(ready) and any(lacks))

    def untold(self, module: DistributedDataParallel) -> bool:
        """Whether nothing is known of the newest pass: torch times none of a static graph's first one."""
        return bool(module.static_graph) and not any(self._ready)

    def look(self, module: DistributedDataParallel) -> None:
        """Read torch's log, before the newest pass is: it tells of the one before, where torch measured that.

        Between the moment at which the last gradient is ready and the end of the arithmetic it is copied into
        its bucket. The log says how long that took; the least of what it said is taken off every pass.
        """
        # Read in every pass, it cannot be of an older one than the newest that was timed.
        always = self.passes <= FIRST or self.closely
        if not always and self._lag is None:
            self._lag = 0
        data = self._read_log(module.logger)
        log, self._first = data.ints_map, first_bucket(module, data.strs_map)
        if log.get("iteration", 0) == self._iteration:
            return
        self._iteration = log["iteration"]
        if self.on_cpu and always and log.get("backward_compute_time"):
            self._lags.append(max(log["backward_compute_time"] - max(self._ready), 0))
            self._lag = min(self._lags)
            self.waits = self._lag <= self._copy_ns
        if module.find_unused_parameters:
            self.unused_bytes = max(self.unused_bytes or 0, log.get("unused_parameter_size", 0))
        if log.get("backward_comm_time"):
            self.sampled.append((exposed_ns(log), log["backward_comm_time"], log["backward_compute_time"]))

    def restore(self) -> None:
        """Have torch measure as rarely as it does by itself."""
        module = self.reference()
        if module is not None and self.closely:
            measure_every(module, TORCH_RATE)

    def fact(self) -> dict[str, Any] | None:
        """How it was set up and what was seen of it; None when it is gone."""
        module = self.reference()
        fields = None if module is None else facts.ddp_facts(module)
        if module is None or fields is None:
            return None
        if self.unused_bytes is not None:
            fields["unused_parameter_size"] = self.unused_bytes
        log = torch_compat.value(torch_compat.DDP_LOG)(module)
        return {
            **fields,
            **self._medians(),
            "world_size": log.get("world_size"),
            "gradient_mb": self.gradient_mb,
            "buckets": len(str(log.get("rebuilt_bucket_sizes") or log.get("bucket_sizes") or "").split(",")),
            "rebuilt_bucket_bytes": log.get("rebuilt_bucket_sizes"),
            "broadcast_buffers": bool(log.get("broadcast_buffers")),
            "comm_hook": log.get("comm_hook"),
            "device": module.device_type,
            "class": type(module.module).__name__,
            "location": self.place,
        }

    def _medians(self) -> dict[str, float]:
        if not self.sampled or self.waits:
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

    def __init__(self, recorder: Recorder, module_hooks: ModuleHooks) -> None:
        self.recorder, self.module_hooks = recorder, module_hooks
        self.watched: list[Replica] = []
        #: When the newest forward pass of each ended that a backward pass may follow.
        self._forwards: dict[int, int] = {}
        self.after_backward = self._make_after_backward()

    def install(self, patches: Patches) -> None:
        """See every module that is wrapped from now on, and find those that are."""
        patches.replace(DistributedDataParallel, "__init__", self._made)
        for name, make in (
            (torch_compat.DDP_POST_FORWARD, self._forwarded),
            (torch_compat.DDP_SYNC_BUFFERS, self._broadcast),
        ):
            if torch_compat.has(name):  # what is missing is told once a module is wrapped
                patches.replace(*torch_compat.owner(name), make)
        patches.on_undo(self._restore)
        self.recorder.watch(self._find, "comm")
        self.recorder.watch(self._tell, "ddp")

    def _make_after_backward(self) -> Callable[[], None]:
        watched, loop_state, live = self.watched, self.recorder.loop_state, self.recorder.tape.live
        reassign, values, forwards = self.recorder.clock.reassign, self.recorder.values, self._forwards
        exchanges = False

        def book() -> None:
            nonlocal exchanges
            ended, last, syncs, told_all, gone = live[LIVE_SINCE_NS], 0, 0, True, False
            for replica in watched:
                module = replica.reference()
                if module is None:
                    gone = True
                    continue
                replica.passes = passes = replica.passes + 1
                if passes <= FIRST or replica.closely or not passes % EVERY:
                    replica.look(module)
                if not replica.on_cpu:
                    syncs += bool(module.require_backward_grad_sync)  # it is off inside `no_sync()`
                elif (ready := replica.ready_ns(module, forwards[replica.number])) is not None:
                    syncs, last = syncs + 1, max(last, ready[0] or ended)
                    if ready[1] is not None:
                        add(values, COLLECTIVE_MS, max(ended - ready[1], 0) / 1e6)
                    add(values, COLLECTIVE_MB, replica.gradient_mb)
                else:
                    told_all = told_all and not replica.untold(module)
            if gone:
                self._prune()
            if watched and told_all:
                add(values, SYNCS, syncs)
            exchanges = (exchanges or syncs > 0) and bool(watched)
            loop_state.drifts = exchanges and told_all and not syncs
            if last:
                reassign(BACKWARD, COMM, ended - last)

        def after_backward() -> None:
            try:
                book()
            except Exception as error:  # noqa: BLE001 - the training must not notice
                self.recorder.signal_lost("comm", error)

        return after_backward

    def _forwarded(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The reducer counts a gradient's time from here, where it gets ready for the backward pass."""
        forwards, now, grad_enabled = self._forwards, time.perf_counter_ns, torch.is_grad_enabled

        def _post_forward(module: Any, /, *args: Any, **kwargs: Any) -> Any:
            output = original(module, *args, **kwargs)
            if id(module) in forwards and grad_enabled() and module.require_backward_grad_sync:
                forwards[id(module)] = now()
            return output

        return _post_forward

    def _made(self, original: Callable[..., None]) -> Callable[..., None]:
        recorder = self.recorder

        def __init__(module: Any, /, *args: Any, **kwargs: Any) -> None:
            original(module, *args, **kwargs)
            if recorder.training_thread_id[0]:
                try:
                    self._watch(module, location(user_frame(2)))
                except Exception as error:  # noqa: BLE001 - the training must not notice
                    recorder.signal_lost("comm", error)

        return __init__

    def _broadcast(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Buffers (of batch norms) come from rank 0 before each forward pass, which waits for them."""
        recorder, clock, live = self.recorder, self.recorder.clock, self.recorder.tape.live

        def _sync_buffers(module: Any, *args: Any, **kwargs: Any) -> Any:
            if get_ident() != recorder.training_thread_id[0] or live[LIVE_PHASE] == BEFORE:
                return original(module, *args, **kwargs)
            depth = clock.push(COMM)
            try:
                return original(module, *args, **kwargs)
            finally:
                clock.pop(depth)

        return _sync_buffers

    def _find(self) -> None:
        """Those that were wrapped before we came, wherever they are in a model."""
        known = {id(replica.reference()) for replica in self.watched}
        for root in self.module_hooks.modules:
            for module in root.modules():
                if isinstance(module, DistributedDataParallel) and id(module) not in known:
                    made = made_at(module, type(module).__name__, user_frame(1)) or _named(module)
                    self._watch(module, made[0] if made else None)

    def _prune(self) -> None:
        """Forget those that are gone: what trains on when none is left exchanges nothing."""
        self.watched[:] = [replica for replica in self.watched if replica.reference() is not None]

    def _watch(self, module: DistributedDataParallel, place: str | None) -> None:
        self._prune()
        if len(self.watched) < WATCHED and module.logger is not None and "comm" not in self.recorder.lost:
            for needed in (torch_compat.DDP_POST_FORWARD, torch_compat.DDP_SYNC_BUFFERS):
                torch_compat.owner(needed)
            self.watched.append(Replica(module, place))
            self._forwards[id(module)] = 0

    def _tell(self) -> None:
        """The fact "ddp" is of the one with most parameters, where there are several."""
        found = [fact for replica in self.watched if (fact := replica.fact()) is not None]
        if found:
            self.recorder.fact("ddp", max(found, key=lambda fact: fact["gradient_mb"]))

    def _restore(self) -> None:
        self.recorder.loop_state.drifts = False
        replicas = list(self.watched)
        self.watched.clear()
        for replica in replicas:
            replica.restore()


def _named(module: nn.Module) -> tuple[str, str | None] | None:
    """It is usually imported as DDP."""
    return made_at(module, "DDP", user_frame(2))
