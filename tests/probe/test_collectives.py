"""Collectives that a loop calls itself are communication, under whatever name."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
import torch.distributed as dist
from gloo_ranks import RankOutcome, run_ranks
from loops import BATCHES, error, loader, net, sgd
from torch import nn
from watching import Watch, watching

from monitor.probe.collectives import METHODS


@pytest.fixture(autouse=True)
def group() -> Iterator[None]:
    """A process group of one."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def train(exchange: Callable[[nn.Module], Any]) -> None:
    """One training that calls `exchange` after every backward pass."""
    model = net()
    optimizer = sgd(model)
    for batch in loader():
        optimizer.zero_grad()
        error(model, batch).backward()
        exchange(model)
        optimizer.step()


def watched(folder: Path, exchange: Callable[[nn.Module], Any]) -> Watch:
    """The same with a probe."""
    with watching(folder) as watch:
        train(exchange)
    return watch


def of(*names: str) -> Callable[..., Any]:
    """The first of these that this torch has: it renamed some."""
    return next(getattr(dist, name) for name in names if hasattr(dist, name))


ten = torch.zeros(10)
CALLS: dict[str, Callable[[nn.Module], Any]] = {
    "all_reduce": lambda model: [dist.all_reduce(p.grad) for p in model.parameters()],
    "broadcast": lambda _: dist.broadcast(ten, 0),
    "all_gather": lambda _: dist.all_gather([torch.empty(10)], ten),
    "all_gather_single": lambda _: of("all_gather_single", "all_gather_into_tensor")(torch.empty(10), ten),
    "reduce_scatter": lambda _: of("reduce_scatter_single", "reduce_scatter_tensor")(torch.empty(10), ten),
    "all_to_all_single": lambda _: dist.all_to_all_single(torch.empty(10), ten),
    "all_gather_object": lambda _: dist.all_gather_object([None], "a"),
    "barrier": lambda _: dist.barrier(),
    "asynchronous": lambda _: dist.all_reduce(ten, async_op=True).wait(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_communication(name: str, tmp_path: Path) -> None:
    """In the step in which it was made."""
    watch = watched(tmp_path, CALLS[name])
    assert all(ms > 0 for ms in watch.column("comm_ms"))
    assert watch.steps == BATCHES


def test_what_travels_is_counted(tmp_path: Path) -> None:
    """Ten numbers of four bytes."""
    assert watched(tmp_path, CALLS["broadcast"]).column("collective_mb") == pytest.approx([40e-6] * BATCHES)


def test_collectives_before_the_first_step_belong_to_none(tmp_path: Path) -> None:
    """A barrier that waits for late ranks to start is no cost of training."""
    with watching(tmp_path) as watch:
        time.sleep(0.5)
        dist.barrier()
        train(CALLS["barrier"])
    assert watch.column("comm_ms")[0] < 500


def test_everything_is_put_back(tmp_path: Path) -> None:
    """Torch's own classes are as they were."""
    before = {name: inspect.getattr_static(dist.ProcessGroup, name, None) for name in METHODS}
    before["wait"] = inspect.getattr_static(dist.Work, "wait")
    watched(tmp_path, CALLS["barrier"])
    after = {name: inspect.getattr_static(dist.ProcessGroup, name, None) for name in METHODS}
    after["wait"] = inspect.getattr_static(dist.Work, "wait")
    assert after == before


def test_a_call_that_fails_fails_as_before(tmp_path: Path) -> None:
    """With torch's own exception, and the step goes on."""

    def wrong(_: nn.Module) -> None:
        with pytest.raises((RuntimeError, ValueError)):
            dist.all_gather([torch.empty(3)], ten)

    assert watched(tmp_path, wrong).steps == BATCHES


FSDP2 = """
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:  # before torch 2.6
        from torch.distributed._composable.fsdp import fully_shard
    model = nn.Sequential(nn.Linear(8, 256), nn.ReLU(), nn.Linear(256, 1))
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x,) in enumerate(DataLoader(TensorDataset(torch.randn(16, 8)), batch_size=2)):
        if rank == 1 and step > 0:
            be_late_in_collective(step)
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
    model = nn.Linear(1, 1)
"""


def waited(first: RankOutcome, second: RankOutcome, step: int) -> None:
    """From that step on the first rank has waited 30 ms for the other one, which has not."""
    steps = range(step, 8)
    waits, hurries, lasts = first.columns["comm_ms"], second.columns["comm_ms"], second.columns["step_ms"]
    assert min(waits[at] for at in steps) > 29
    assert min(lasts[at] - hurries[at] for at in steps) > 29
    assert median(waits[step:]) > median(hurries[step:])


@pytest.mark.skipif(
    torch.__version__ < "2.5" and not torch.cuda.is_available(),
    reason="FSDP2 of torch 2.4 opens CUDA streams, whatever the device of its mesh",
)
def test_fsdp2(tmp_path: Path) -> None:
    """Its gathers and scatters are communication: the rank that comes first waits in them."""
    first, second = run_ranks(tmp_path, FSDP2)
    waited(first, second, 1)
    assert median(first.columns["collective_mb"]) > 0
    assert not first.warnings + second.warnings


def functional() -> Any:
    import torch.distributed._functional_collectives as module

    return module


def test_functional_collectives_are_seen(tmp_path: Path) -> None:
    """What DTensor is made of: their wait is communication, and what they bring is counted."""
    group = dist.group.WORLD
    watch = watched(tmp_path, lambda model: functional().all_reduce(model[0].weight.grad, "sum", group) + 1)
    size_mb = net()[0].weight.numel() * 4 / 1e6
    assert watch.column("collective_mb") == pytest.approx([size_mb] * BATCHES)
    assert min(watch.column("comm_ms")) > 0


SPREAD = """
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x,) in enumerate(DataLoader(TensorDataset(torch.randn(16, 8)), batch_size=2)):
        if rank == 1 and step > 3:
            be_late_in_collective(step)
        optimizer.zero_grad()
        model(x).sum().backward()
        try:
            from torch.distributed.tensor import DTensor, DeviceMesh, Partial
        except ImportError:  # before torch 2.5
            from torch.distributed._tensor import DTensor, DeviceMesh
            from torch.distributed._tensor.placement_types import Partial
        mesh = DeviceMesh("cpu", list(range(size)))
        whole = DTensor.from_local(model.weight.grad, mesh, [Partial()], run_check=False).full_tensor()
        model.weight.grad.copy_(whole)
        optimizer.step()
"""


def test_tensors_that_are_spread_over_ranks(tmp_path: Path) -> None:
    """A DTensor summed up in every step, its module loaded after we attached: the first to come waits."""
    first, second = run_ranks(tmp_path, SPREAD)
    waited(first, second, 4)
    assert median(first.columns["collective_mb"][4:]) == pytest.approx(8 * 8 * 4 / 1e6)
    assert not first.warnings + second.warnings


@pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning")  # Python 3.13.0 has a bug
def test_a_graph_with_collectives_stays_whole(tmp_path: Path) -> None:
    """Compiled code has them in its graph: we break none, and the result is the same."""
    group, module = dist.group.WORLD, functional()

    @torch.compile(backend="eager", fullgraph=True)
    def exchanged(tensor: torch.Tensor) -> torch.Tensor:
        return module.wait_tensor(module.all_reduce(tensor * 2, "sum", group))

    results = []
    watched(tmp_path, lambda _: results.append(exchanged(torch.ones(3))))
    assert [list(result) for result in results] == [[2.0] * 3] * BATCHES


def exchanges() -> int:
    """Collectives that the group of this process has had."""
    return int(dist.distributed_c10d._get_default_group()._get_sequence_number_for_group())


def test_no_collective_is_ours(tmp_path: Path) -> None:
    """A training has as many with us as without: one that we added could deadlock."""
    from torch.nn.parallel import DistributedDataParallel

    def learn() -> int:
        before, model = exchanges(), DistributedDataParallel(net())
        optimizer = sgd(model)
        for batch in loader():
            optimizer.zero_grad()
            error(model, batch).backward()
            optimizer.step()
        return exchanges() - before

    without = learn()
    with watching(tmp_path):
        watched_too = learn()
    assert watched_too == without >= BATCHES
