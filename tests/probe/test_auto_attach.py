"""A script that knows nothing of us, in a process that `torchvitals run` prepared."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from monitor.launcher import STARTUP

#: Says on stderr, at the very end, whether and when we attached.
SAY = """
def say():
    import sys, monitor.session as session
    current = session._current
    probe = current._probe if current is not None else None
    print("attached" if probe else "not attached", probe.recorder.steps if probe else 0, file=sys.stderr)
"""

TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def script(folder: Path, body: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script as `run` does: our startup folder first on PYTHONPATH, and the run's key."""
    path = folder / "train.py"
    path.write_text(SAY + textwrap.dedent(body))
    given = {**os.environ, "PYTHONPATH": str(STARTUP), "MONITOR_RUN_KEY": f"test:{folder}"}
    given |= {"MONITOR_DASHBOARD": "off", **env}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=given,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done


LOOPS = {
    "a loader": """
        for x, y in DataLoader(TensorDataset(torch.randn(12, 4), torch.randn(12, 1)), batch_size=4):
            optimizer.zero_grad()
            (model(x) - y).pow(2).mean().backward()
            optimizer.step()
        """,
    "no loader": """
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(2, 4)).pow(2).mean().backward()
            optimizer.step()
        """,
    "no backward": """
        for _ in range(4):  # the first step tells that training has begun
            gradients = torch.autograd.grad(model(torch.randn(2, 4)).pow(2).mean(), list(model.parameters()))
            for parameter, gradient in zip(model.parameters(), gradients):
                parameter.grad = gradient
            optimizer.step()
        """,
    "a penalty on gradients": """
        for _ in range(3):
            x = torch.randn(2, 4, requires_grad=True)
            (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
            optimizer.zero_grad()
            (model(x).mean() + slope.square().mean()).backward()
            optimizer.step()
        """,
    "hooks of the user's own": """
        from torch.optim import optimizer as hooks
        calls = []
        hooks.register_optimizer_step_pre_hook(lambda *_: calls.append("before"))
        hooks.register_optimizer_step_post_hook(lambda *_: calls.append("after"))
        optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
        optimizer.register_step_post_hook(lambda *_: calls.append("after"))
        for number in range(4):
            model.weight.grad = torch.ones_like(model.weight)
            optimizer.step()
        assert calls == ["before", "before", "after", "after"] * 4, calls
        """,
    "an attach of its own": """
        import monitor
        loader = DataLoader(TensorDataset(torch.randn(12, 4), torch.randn(12, 1)), batch_size=4)
        session = monitor.attach(model)
        for x, y in loader:
            optimizer.zero_grad()
            (model(x) - y).pow(2).mean().backward()
            optimizer.step()
        assert not session._failed
        assert DataLoader.__iter__.__wrapped__.__module__ == "torch.utils.data.dataloader"
        assert not hasattr(DataLoader.__iter__.__wrapped__, "__wrapped__"), "a trigger stayed beneath"
        """,
    "somebody else's replacement": """
        theirs, calls = DataLoader.__iter__, []
        DataLoader.__iter__ = lambda self: calls.append(1) or theirs(self)
        backward = torch.autograd.backward
        torch.autograd.backward = lambda *args, **kwargs: calls.append(2) or backward(*args, **kwargs)
        for x, y in DataLoader(TensorDataset(torch.randn(12, 4), torch.randn(12, 1)), batch_size=4):
            optimizer.zero_grad()
            (model(x) - y).pow(2).mean().backward()
            optimizer.step()
        assert calls == [1, 2, 2, 2], calls
        """,
    "a closure": """
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
        def closure():
            optimizer.zero_grad()
            loss = model(torch.ones(2, 4)).pow(2).mean()
            loss.backward()
            return loss
        for _ in range(4):
            optimizer.step(closure)
        """,
}


WITHOUT_BACKWARD = ("no backward", "hooks of the user's own", "a closure")


@pytest.mark.parametrize("loop", LOOPS)
def test_it_attaches_when_training_begins(loop: str, tmp_path: Path) -> None:
    """Whatever comes first, a fetch, a backward pass or an optimizer step: then, and not a word on stdout."""
    done = script(tmp_path, TRAIN + textwrap.dedent(LOOPS[loop]) + "\nsay()\n")
    assert done.stdout == ""
    # Four steps where an optimizer's step comes first; of three batches the last may still be waiting.
    right = ("attached 4",) if loop in WITHOUT_BACKWARD else ("attached 2", "attached 3")
    assert done.stderr.splitlines()[-1] in right
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "body",
    [
        "",
        "import torch\n",
        "import json, torch\nmodel = torch.nn.Linear(1, 1)(torch.ones(1))\n",
        "import torch\nx = torch.ones(1, requires_grad=True)\nslope = torch.autograd.grad(x * x, x)\n",
    ],
)
def test_a_script_that_trains_nothing_is_left_alone(body: str, tmp_path: Path) -> None:
    """A launcher or a helper imports torch as well: nothing of a run is made."""
    done = script(tmp_path, f"{body}\nsay()\n")
    assert done.stderr == "not attached 0\n"
    assert not list((tmp_path / "state").rglob("*.tape"))


def test_torch_is_not_imported_for_us(tmp_path: Path) -> None:
    """A script without torch stays one, and starts no slower than it would for that."""
    done = script(tmp_path, "import sys\nprint('torch' in sys.modules, 'numpy' in sys.modules)\n")
    assert (done.stdout, done.stderr) == ("False False\n", "")


def test_the_users_own_sitecustomize_still_runs(tmp_path: Path) -> None:
    """Ours comes first on the path and steps aside."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins\nbuiltins.mine = 7\n")
    paths = os.pathsep.join([str(STARTUP), str(tmp_path / "site")])
    done = script(
        tmp_path,
        f"import sys, sitecustomize\nprint(mine, sitecustomize.__file__.endswith('site/sitecustomize.py'),"
        f" {str(STARTUP)!r} in sys.path)\n",
        PYTHONPATH=paths,
    )
    assert (done.stdout, done.stderr) == ("7 True False\n", "")


def test_without_a_sitecustomize_there_is_none(tmp_path: Path) -> None:
    """Nothing is said of the missing one."""
    done = script(tmp_path, "import torch\nprint('fine')\n")
    assert (done.stdout, done.stderr) == ("fine\n", "")


def test_without_a_key_nothing_happens(tmp_path: Path) -> None:
    """The folder on the path alone attaches nobody."""
    done = script(tmp_path, TRAIN + textwrap.dedent(LOOPS["a loader"]) + "\nsay()\n", MONITOR_RUN_KEY="")
    assert done.stderr == "not attached 0\n"


def test_options_that_make_no_sense_stop_no_script(tmp_path: Path) -> None:
    """A wrong environment variable is said in one line; the training runs."""
    done = script(
        tmp_path, TRAIN + textwrap.dedent(LOOPS["a loader"]) + "\nsay()\n", MONITOR_SAMPLE_S="often"
    )
    assert done.stderr.splitlines()[-1] == "not attached 0"
    assert "sample_s" in done.stderr
    assert len(done.stderr.splitlines()) == 2


WORKERS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

class Rows(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        inner = DataLoader(TensorDataset(torch.ones(2, 4)), batch_size=2)  # a loader inside a worker
        return next(iter(inner))[0][0], torch.zeros(1)

if __name__ == "__main__":
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(Rows(), batch_size=4, num_workers=1, multiprocessing_context="spawn"):
        optimizer.zero_grad()
        (model(x) - y).pow(2).mean().backward()
        optimizer.step()
    say()
"""


def test_spawned_workers_do_not_attach(tmp_path: Path) -> None:
    """A worker inherits path and key, and has a loader of its own; the run has one tape, the trainer's."""
    done = script(tmp_path, WORKERS)
    assert done.stderr == "attached 2\n"
    assert len(list((tmp_path / "state").rglob("*.tape"))) == 1


#: Before a rank lets its process group go it waits until gloo's threads hold no object of Python's any more,
#: such as a backward pass hands them. Torch 2.13 hangs or aborts there otherwise, as the group waits for them
#: with the interpreter locked (1 in 25 on a busy machine, with us and without).
RANKS = """
import contextvars
import gc
import os
import time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

def contexts():
    return sum(type(one) is contextvars.Context for one in gc.get_objects())

def rank(number, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=number, world_size=2)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    held = contexts()
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).mean().backward()
        optimizer.step()
    while contexts() > held:
        time.sleep(0.001)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(rank, args=(os.getcwd(),), nprocs=2)
    say()
"""


def test_spawned_ranks_attach_each_and_their_parent_does_not(tmp_path: Path) -> None:
    """`mp.spawn` of two ranks: both in one run, with rank and world size."""
    from monitor import report
    from monitor.store import FILE_NAME, Store

    done = script(tmp_path, RANKS)
    assert done.stderr.splitlines()[-1] == "not attached 0"
    (run,) = (tmp_path / "runs").iterdir()
    assert report.wait(run, 30.0)["world_size"] == 2
    with Store(run / FILE_NAME) as store:
        steps = {name: rows for name, rows in store.streams().items() if name.startswith("rank/")}
    assert steps == {"rank/0": 5, "rank/1": 5}
