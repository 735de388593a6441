"""`torchvitals bridge`: a run's numbers and findings, sent one way into a tool that a team uses already."""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from monitor import runs, state
from monitor.bridges.follow import Target, follow
from monitor.cli import UsageError
from monitor.store import FILE_NAME, Store, StoreError

HELP = "send a run to TensorBoard, MLflow or Weights & Biases while it goes on"
EXAMPLE = """  torchvitals bridge tensorboard latest ./logs
  torchvitals bridge mlflow latest --tracking-uri http://mlflow.example.org
  torchvitals bridge wandb latest --project digits"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("target", choices=("tensorboard", "mlflow", "wandb"), help="where it goes")
    parser.add_argument("run", metavar="RUN", help="a run's id or its beginning, its name, or 'latest'")
    parser.add_argument("folder", metavar="LOGDIR", nargs="?", type=Path, help="TensorBoard's log folder")
    parser.add_argument("--tracking-uri", metavar="URI", help="MLflow's server (default: as it is set up)")
    parser.add_argument("--experiment", default="torchvitals", help="MLflow's (default: %(default)s)")
    parser.add_argument("--project", default="torchvitals", help="W&B's (default: %(default)s)")
    parser.add_argument("--run-dir", metavar="DIR", help="where the runs are kept")


def run(args: argparse.Namespace) -> int:
    """Send until the run is over, or until Ctrl-C; exit status 0."""
    if (args.folder is None) == (args.target == "tensorboard"):
        raise UsageError(
            "LOGDIR is for tensorboard, and it needs one: torchvitals bridge tensorboard RUN LOGDIR"
        )
    try:
        folder = runs.resolve(args.run, state.run_dir(args.run_dir))
        with Store(folder / FILE_NAME) as store, _refusals(args.target), _until_signal() as stop:
            follow(store, _TARGETS[args.target](store.meta(), args), stop.wait)
    except (runs.NoSuchRunError, StoreError) as error:
        raise UsageError(str(error)) from None
    return 0


@contextlib.contextmanager
def _until_signal() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM, so that the target is closed as after a run's end."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stop.set()) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@contextlib.contextmanager
def _refusals(name: str) -> Iterator[None]:
    """What a tool elsewhere refuses is one line: its libraries' errors share no base class."""
    try:
        yield
    except (UsageError, StoreError):
        raise
    except ImportError as error:
        missing = (error.name or str(error)).split(".")[0]
        raise UsageError(f"{name} needs {missing}: pip install 'torchvitals[{name}]'") from None
    except Exception as error:  # noqa: BLE001
        reason = " ".join(str(error).split())[:300]
        raise UsageError(f"{name} does not take the run: {type(error).__name__}: {reason}") from None


def _tensorboard(_: Mapping[str, Any], args: argparse.Namespace) -> Target:
    from monitor.bridges.to_tensorboard import TensorBoard

    return TensorBoard(args.folder)


def _mlflow(meta: Mapping[str, Any], args: argparse.Namespace) -> Target:
    from monitor.bridges.to_mlflow import Mlflow

    return Mlflow(meta, args.tracking_uri, args.experiment)


def _wandb(meta: Mapping[str, Any], args: argparse.Namespace) -> Target:
    from monitor.bridges.to_wandb import Wandb

    return Wandb(meta, args.project)


_TARGETS: dict[str, Callable[[Mapping[str, Any], argparse.Namespace], Target]] = {
    "tensorboard": _tensorboard,
    "mlflow": _mlflow,
    "wandb": _wandb,
}
