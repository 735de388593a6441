"""attach() and what it returns: the way in, for people."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from monitor import process_end
from monitor.schema import PHASES

if TYPE_CHECKING:
    from monitor.launcher import RunHandle
    from monitor.options import Options
    from monitor.probe.adapters import Adapter
    from monitor.probe.faults import Faults
    from monitor.probe.probe import Probe

_current: Session | None = None


def attach(target: Any = None, *, loader: Any = None, **given: Any) -> Session:
    """Watch the training of this process from now on.

    Args:
        target: what trains: a trainer of Lightning, Hugging Face, Accelerate, Ignite or fastai, an
            `nn.Module`, an optimizer, or nothing at all for whatever this process trains.
        loader: an iterable that gives the batches and is no DataLoader; see `Session.loader`.
        given: options: name, run_dir, hub, dashboard, sample_s, stall_after_s, on_stall,
            on_stall_grace_s, alerts, config.
            Each has an environment variable MONITOR_<OPTION>; MONITOR=off makes this do nothing.

    Returns:
        The session. A second call returns the same one.

    Raises:
        TypeError: a target of an unsupported kind, or an unknown option.
        ValueError: an option's value makes no sense.
    """
    global _current
    from monitor import options

    chosen = options.resolve(given)
    if options.switched_off():
        return Session(loader=loader)
    adapter, modules = _understood(target, loader)
    if _current is not None and _current._failed:
        return _current
    try:
        if _current is None or not _current.active:
            _current = _begin(chosen, modules, _ranks(adapter, target))
        _current._more(target, adapter, modules, loader)
    except Exception as error:  # noqa: BLE001 - the training goes on, whatever is wrong with us
        print(f"torchvitals: monitoring is off: {_reason(error)}. The training goes on.", file=sys.stderr)
        if _current is not None:
            _current.detach()
        _current = Session(loader=loader)
        _current._failed = True
    return _current


class Session:
    """One process's part of a run.

    Attributes:
        run: the run's id; None when nothing is monitored.
        url: dashboard address with its token; None without a dashboard.
        loader: the iterable named in `attach(loader=…)`, with its waiting time measured. Where its class
            can be changed, iterating over the original is the same; lists and generators need this one.
    """

    def __init__(
        self, handle: RunHandle | None = None, probe: Probe | None = None, loader: Any = None
    ) -> None:
        self.run = handle.run if handle else None
        self.url = handle.url if handle else None
        self._handle = handle
        self._probe = probe
        self._faults: Faults | None = None
        self._pid = os.getpid()
        self._failed = False
        self.loader = loader

    @property
    def active(self) -> bool:
        """Whether this process is being recorded."""
        return self._probe is not None and self._pid == os.getpid()

    def report(self) -> dict[str, Any]:
        """The run's report so far, as `torchvitals report` prints it. Empty when nothing is monitored."""
        if self._handle is None:
            return {}
        from monitor import report

        try:
            return report.build(self._handle.run_dir / self._handle.run)
        except report.StoreError as error:  # the agent has not begun to write
            return {**report.nothing(self._handle.run, str(error)), "status": "running", "exit": None}

    def detach(self) -> None:
        """Stop watching: the last step is recorded and everything that was patched is put back."""
        self._finish(code=0, reason="detached")

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a part of the step.

        Args:
            name: a phase of the contract (data, eval, checkpoint, …) adds to that phase. Any other name
                is a phase of your own: part of `other`, and charted as `<name>_ms`.
        """
        recorder = self._probe.recorder if self.active and self._probe else None
        if recorder is None or not recorder.here:
            yield
            return
        number = PHASES.index(name) if name in PHASES else PHASES.index("other")
        recorder.clock.begin()
        depth, began_ns = recorder.clock.push(number), time.perf_counter_ns()
        try:
            yield
        finally:
            recorder.clock.pop(depth)
            if name not in PHASES:
                self.log(**{f"{name}_ms": (time.perf_counter_ns() - began_ns) / 1e6})

    def step(self) -> None:
        """A step ends here: for loops that train by means of their own, and for inference."""
        if self.active and self._probe and self._probe.recorder.here:
            self._probe.step()

    def log(self, **values: float) -> None:
        """Record numbers of your own, to be charted beside ours.

        A tensor on a device is waited for. What comes more often than four times a second is averaged.

        Raises:
            TypeError, ValueError: a value that is no number.
        """
        if self.active and self._probe:
            self._probe.recorder.user_metrics.log({key: float(value) for key, value in values.items()})

    def __repr__(self) -> str:
        return f"<monitor.Session {self.run} {self.url}>" if self.run else "<monitor.Session off>"

    def _repr_html_(self) -> str:
        """For notebooks: the dashboard in a frame. Its address holds a ticket, not the token."""
        from monitor import notebook

        return notebook.html(self.run, self.url)

    def _ipython_display_(self) -> None:
        """For notebooks: show the dashboard below the cell. Whatever fails there, the cell goes on."""
        from monitor import notebook

        try:
            notebook.show(self.run, self.url)
        except Exception as error:  # noqa: BLE001 - a display must not end the cell that trains
            print(f"torchvitals: cannot be shown here: {_reason(error)}", file=sys.stderr)

    def _more(self, target: Any, adapter: Adapter | None, modules: list[Any], loader: Any) -> None:
        probe = self._probe
        if probe is None:
            return
        for module in modules:
            probe.module_hooks.add(module)
        if adapter is not None:
            probe.attach(adapter, target)
        if loader is not None:
            from monitor.probe.iterables import watch_loader

            self.loader = watch_loader(loader, probe.loader_hooks, probe.patches)

    def _optimizer_begins(self, optimizer: Any, args: Any, kwargs: Any, release: Any) -> None:
        """The step of an optimizer begins that attached us; `release` is the handle of the hook that told."""
        if self.active and self._probe:
            self._probe.optimizer_begins(optimizer, args, kwargs, release)

    def note_failure(self, kind: type[BaseException], error: BaseException) -> None:
        """An exception that nobody caught ended what trains here."""
        if self._probe is not None and self._pid == os.getpid():
            self._probe.failed(kind, error)
            code = 130 if issubclass(kind, KeyboardInterrupt) else 1
            self._finish(code=code, reason=f"{kind.__name__}: {str(error)[:300]}")

    def _finish(self, **end: Any) -> None:
        probe, self._probe = self._probe, None
        if probe is None or self._pid != os.getpid():
            return
        try:
            probe.finish(**end)
            # A process that ends may yet crash on its way: then its trace is still wanted.
            if self._faults is not None and end.get("reason") != process_end.AT_EXIT:
                self._faults.release()
        except Exception as error:  # noqa: BLE001 - the training goes on, whatever is wrong with us
            print(f"torchvitals: {_reason(error)}", file=sys.stderr)


def _begin(chosen: Options, modules: list[Any], ranks: tuple[int, int, int]) -> Session:
    from monitor import launcher, notebook
    from monitor.probe import auto_attach
    from monitor.probe.facts import environment
    from monitor.probe.faults import leave_traces
    from monitor.probe.probe import Probe
    from monitor.probe.recorder import Recorder
    from monitor.probe.script import script_facts, variables
    from monitor.tape.writer import JournalWriter, TapeWriter

    auto_attach.stand_down()
    rank, world_size, local_rank = ranks
    name = chosen.name or script_name()
    about = {
        "host": host_name(),
        "world_size": world_size,
        "argv": list(sys.argv),
        "python": sys.executable,
        "cwd": os.getcwd(),
    }
    handle = launcher.enter(chosen, launcher.run_key(ranks=world_size), name=name, facts=about)
    stem = str(handle.spool / f"rank-{rank}-{os.getpid()}")
    journal = JournalWriter(f"{stem}.journal")
    tape = TapeWriter(f"{stem}.tape", rank=rank, world_size=world_size, local_rank=local_rank)
    recorder = Recorder(tape, journal)
    recorder.event("attach", pid=os.getpid(), started_unix_s=time.time(), **about)
    recorder.fact("env", environment())
    recorder.fact("script", script_facts())
    recorder.fact("variables", variables())
    session = Session(handle, Probe(recorder, modules))
    assert session._probe is not None
    session._faults = leave_traces(recorder, session._probe.patches, f"{stem}.stacks", handle.agent)
    process_end.watch_exit(_at_exit)
    for undo in (*process_end.watch(session), notebook.after_each_cell(session._probe.pause)):
        if undo is not None:
            session._probe.patches.on_undo(undo)
    if not handle.started:
        _agent_as_thread(handle)
    return session


def _at_exit() -> None:
    if _current is not None:
        _current._finish(code=None, reason=process_end.AT_EXIT)


def _agent_as_thread(handle: RunHandle) -> None:
    """Where no process may be started, the agent runs here, and the page says so."""
    import threading

    from monitor.agent_process import follow

    threading.Thread(target=follow, args=(handle.spool,), daemon=True, name="torchvitals").start()


def _ranks(adapter: Adapter | None, target: Any) -> tuple[int, int, int]:
    """Rank, world size and local rank.

    From the process group where there is one, else the environment, else the trainer that will start the
    other ranks: those it tells, through the environment, that they belong to this run.
    """
    from monitor.launcher import local_rank, ranks_from_environment

    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size(), local_rank()
    if (numbers := ranks_from_environment()) is not None:
        return numbers
    found: tuple[int, int, int] | None = getattr(adapter, "ranks", lambda _: None)(target)
    if found is not None:
        os.environ.setdefault("MONITOR_RUN_KEY", f"launched:{os.getpid()}:{time.perf_counter_ns()}")
    return found or (0, 1, 0)


def _understood(target: Any, loader: Any) -> tuple[Adapter | None, list[Any]]:
    """The adapter for `target`, or the modules that it is. Raises TypeError for what is not supported."""
    if loader is not None and not hasattr(type(loader), "__iter__"):
        kind = type(loader)
        raise TypeError(f"attach(loader=…) takes an iterable, not a {kind.__module__}.{kind.__qualname__}")
    if target is None:
        return None, []
    torch = sys.modules.get("torch")
    if torch is not None:
        if isinstance(target, torch.nn.Module):
            return None, [target]
        if isinstance(target, torch.optim.Optimizer):
            return None, []
        if isinstance(target, list | tuple) and all(isinstance(m, torch.nn.Module) for m in target):
            return None, list(target)
    from monitor.probe.adapters import find

    return find(target), []


def host_name() -> str:
    """This host's name, in letters that a stream's name may have."""
    name = platform.node().split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:64].lstrip("-_") or "host"


def script_name() -> str:
    """What the run is called when nobody says: the script's or notebook's name without its ending."""
    script = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else ""
    if script in ("ipykernel_launcher.py", "colab_kernel_launcher.py"):
        notebook = os.path.basename(os.environ.get("JPY_SESSION_NAME", ""))  # where Jupyter tells it
        return notebook.removesuffix(".ipynb") or "notebook"
    return script.removesuffix(".py") if script not in ("", "-c", "-m") else "run"


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
