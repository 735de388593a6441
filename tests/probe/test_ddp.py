"""DistributedDataParallel: what is waited for is communication, what is computed is backward."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
import torch
import torch.distributed as dist
from gloo_ranks import RankOutcome, run_ranks
from loops import BATCHES, error, learn, loader, net, sgd
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel
from watching import Watch, digest, watching

from monitor.probe.ddp_log import exposed_ns, first_bucket


@pytest.fixture(autouse=True)
def group() -> Iterator[None]:
    """A process group of one."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def train(model: nn.Module, epochs: int = 1) -> None:
    """One ordinary training."""
    optimizer = sgd(model)
    for _ in range(epochs):
        for batch in loader():
            learn(model, optimizer, batch)


def test_exposed_is_what_comes_after_the_arithmetic() -> None:
    """From the end of backward's own work to the end of the last all-reduce, and never less than nothing."""
    assert exposed_ns({"backward_comm_time": 9, "backward_compute_comm_overlap_time": 4}) == 5
    assert exposed_ns({"backward_comm_time": 3, "backward_compute_comm_overlap_time": 4}) == 0
    assert exposed_ns({}) == 0


def test_every_backward_pass_that_exchanges_is_counted(tmp_path: Path) -> None:
    """One an optimizer step, with all gradients' bytes, and time in the phase comm."""
    with watching(tmp_path) as watch:
        model = DistributedDataParallel(net())
        train(model)
    size_mb = sum(p.numel() * 4 for p in model.parameters()) / 1e6
    assert watch.column("syncs") == [1.0] * BATCHES
    assert watch.column("collective_mb") == pytest.approx([size_mb] * BATCHES)
    assert all(row["collective_ms"] >= row["comm_ms"] >= 0 for row in watch.rows)
    assert median(watch.column("comm_ms")) > 0


def test_nothing_is_counted_twice(tmp_path: Path) -> None:
    """What goes to comm is taken out of backward: a step is as long as its phases together."""
    with watching(tmp_path) as watch:
        train(DistributedDataParallel(module=net()))
    phases = [sum(v for k, v in row.items() if k.endswith("_ms") and k in PHASES_MS) for row in watch.rows]
    assert phases == pytest.approx(watch.column("step_ms"), rel=1e-6)
    assert min(watch.column("backward_ms")) > 0


PHASES_MS = {
    f"{p}_ms" for p in "data h2d forward backward optimizer comm checkpoint eval other".split()
}  # fmt: skip


def test_no_sync_is_seen(tmp_path: Path) -> None:
    """Three micro-batches of four exchange nothing: a step has one exchange."""
    with watching(tmp_path) as watch:
        model = DistributedDataParallel(net())
        optimizer = sgd(model)
        for number, batch in enumerate(loader(rows=64)):
            last = number % 4 == 3
            with contextlib.nullcontext() if last else model.no_sync():
                error(model, batch).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    assert watch.column("syncs") == [1.0, 1.0]
    assert watch.column("micro_batches") == [4.0, 4.0]
    assert all(ms > 0 for ms in watch.column("collective_ms"))
    assert [ms for ms in watch.column("comm_ms") if ms > 0] in ([], watch.column("comm_ms")[1:])


def test_training_that_exchanges_nothing_has_no_such_numbers(tmp_path: Path) -> None:
    """Not measured is not zero."""
    with watching(tmp_path) as watch:
        train(net())
    assert all(math.isnan(value) for value in watch.column("syncs") + watch.column("collective_ms"))
    assert "ddp" not in watch.facts()


def test_a_module_that_was_wrapped_before_us_is_found(tmp_path: Path) -> None:
    """After the first step, with the line that wrapped it."""
    model = DistributedDataParallel(net())
    with watching(tmp_path) as watch:
        train(model)
    assert watch.column("syncs")[-1] == 1.0
    assert watch.facts()["ddp"]["location"].startswith("tests/probe/test_ddp.py:")


def test_a_module_inside_another_is_found(tmp_path: Path) -> None:
    """As in a trainer that wraps a part of the model."""
    model = nn.Sequential(DistributedDataParallel(net(out=4)), nn.Linear(4, 1))
    with watching(tmp_path) as watch:
        train(model)
    assert watch.column("syncs")[-1] == 1.0


def test_two_wrapped_modules_are_counted_together(tmp_path: Path) -> None:
    """A backward pass through both exchanges twice."""
    with watching(tmp_path) as watch:
        model = nn.Sequential(DistributedDataParallel(net(out=4)), DistributedDataParallel(nn.Linear(4, 1)))
        train(model)
    assert watch.column("syncs") == [2.0] * BATCHES


def test_the_fact_says_how_it_is_set_up(tmp_path: Path) -> None:
    """What detectors need: size, buckets, backend, world size."""
    with watching(tmp_path) as watch:
        model = DistributedDataParallel(net(), bucket_cap_mb=1)
        train(model, epochs=2)
    fact = watch.facts()["ddp"]
    size_mb = sum(p.numel() * 4 for p in model.parameters()) / 1e6
    assert (fact["world_size"], fact["backend"], fact["buckets"]) == (1, "gloo", 1)
    assert (fact["gradient_mb"], fact["bucket_cap_mb"], fact["class"]) == (size_mb, 1.0, "Sequential")


def test_the_fact_says_whether_training_is_inside_join(tmp_path: Path) -> None:
    """There ranks may have unequal numbers of batches; elsewhere the run hangs."""
    for name in ("plain", "joined"):
        (tmp_path / name).mkdir()
    with watching(tmp_path / "plain") as plain:
        train(DistributedDataParallel(net()))
    with watching(tmp_path / "joined") as joined:
        model = DistributedDataParallel(net())
        with Join([model]):
            train(model)
    assert (plain.facts()["ddp"]["join"], joined.facts()["ddp"]["join"]) == (False, True)


class Branches(nn.Module):
    """Leaves out a layer in every other call."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.calls = net(), net(), 0

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.first(features) + (self.second(features) if self.calls % 2 else 0)


def test_a_parameter_unused_once_is_remembered(tmp_path: Path) -> None:
    """Torch's own log forgets it with the next iteration that uses all."""
    with watching(tmp_path) as watch:
        train(DistributedDataParallel(Branches(), find_unused_parameters=True), epochs=2)
    assert watch.facts()["ddp"]["unused_parameter_size"] > 0


def test_trials_without_exchange_after_the_training_are_no_steps(tmp_path: Path) -> None:
    """Steps are those that the training took; what runs under no_sync behind it, on an old batch, is not."""
    with watching(tmp_path) as watch:
        model = DistributedDataParallel(net())
        optimizer = sgd(model)
        for batch in loader():
            learn(model, optimizer, batch)
        with model.no_sync():
            for _ in range(4):
                learn(model, optimizer, batch)
    assert watch.steps == BATCHES


def test_a_training_without_a_loader_may_keep_from_exchanging(tmp_path: Path) -> None:
    """Batches made by hand, exchanged at every other one: all are steps."""
    batch = next(iter(loader()))
    with watching(tmp_path) as watch:
        model = DistributedDataParallel(net())
        optimizer = sgd(model)
        for number in range(6):
            with contextlib.nullcontext() if number % 2 else model.no_sync():
                learn(model, optimizer, batch)
    assert watch.steps == 6


def test_results_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    """Watched or not."""

    def weights(watch: Watch | None) -> str:
        torch.manual_seed(0)
        model = DistributedDataParallel(net())
        train(model)
        return digest(model)

    bare = weights(None)
    with watching(tmp_path) as watch:
        assert weights(watch) == bare


def test_torch_measures_no_more_often_for_us(tmp_path: Path) -> None:
    """Its own log stands still between every hundredth iteration, as it does without us."""
    with watching(tmp_path):
        model = DistributedDataParallel(net())
        train(model, epochs=5)
    assert model._get_ddp_logging_data()["iteration"] <= 10


def test_an_exchange_in_two_backward_passes_is_one(tmp_path: Path) -> None:
    """The first goes through a part of the parameters, and waits for nobody."""
    batch = next(iter(loader()))
    with watching(tmp_path) as watch:
        model = DistributedDataParallel(nn.ModuleList([net(), net()]), find_unused_parameters=False)
        model.module.forward = lambda features: [part(features) for part in model.module]
        optimizer = sgd(model)
        for _ in range(6):
            one, two = (out.mean() for out in model(batch[0]))
            optimizer.zero_grad()
            one.backward()
            two.backward()
            optimizer.step()
    assert watch.column("backward_calls") == [2.0] * 6
    assert watch.column("syncs") == [1.0] * 6


def test_a_pass_that_does_not_reach_the_module_exchanges_nothing(tmp_path: Path) -> None:
    """Its forward pass ran, but this loss is of something else: what is noted of the last pass is old."""
    batch, other = next(iter(loader())), nn.Linear(1, 1)
    with watching(tmp_path) as watch:
        model = DistributedDataParallel(net())
        optimizer = sgd(model)
        for number in range(6):
            out = model(batch[0]).mean() if number % 2 else other(torch.ones(1, 1)).mean()
            model(batch[0])
            optimizer.zero_grad()
            out.backward()
            optimizer.step()
    assert watch.column("syncs") == [0.0, 1.0] * 3


@pytest.mark.parametrize("unused", [False, True])
def test_the_first_bucket_has_the_last_parameters(unused: bool) -> None:
    """Whether torch puts buckets together anew, or does not: where parameters may be unused."""
    sizes = [256] * 5
    layers = [nn.Linear(a, b, bias=False) for a, b in pairwise(sizes)]
    layers[1].requires_grad_(False)
    model = DistributedDataParallel(nn.Sequential(*layers), find_unused_parameters=unused, bucket_cap_mb=0.3)
    for _ in range(3):
        model(torch.randn(2, 256)).sum().backward()
    data = model.logger._get_ddp_logging_data()
    assert bool(data.strs_map.get("rebuilt_per_bucket_param_indices")) is not unused
    first = first_bucket(model, data.strs_map)
    assert first is not None
    assert first[0] == 2
    assert len(first) < 3


def test_a_first_bucket_that_is_not_known_is_not_guessed() -> None:
    """Parameters of several types are spread by type; a log may be of another torch."""
    model = DistributedDataParallel(net())
    assert first_bucket(model, {}) is None
    assert first_bucket(model, {"bucket_sizes": "3"}) is None


STRAGGLER = """
    torch.manual_seed(rank)
    data = TensorDataset(torch.randn(24, 8), torch.randn(24, 1))
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 64), nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(DataLoader(data, batch_size=2)):
        if rank == 1 and step > 1:  # in the second step's forward pass DDP agrees on new buckets
            be_late(f"computed-{step}")
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        if rank == 0:
            say_when_computed(loss, f"computed-{step}")
        loss.backward()
        optimizer.step()
"""


def usual(rank: RankOutcome, key: str) -> float:
    """Median of all steps but the first."""
    return median(rank.columns[key][1:])


def test_two_ranks(tmp_path: Path) -> None:
    """The one that waits has communication, the late one has not; results are the same as without us."""
    first, second = run_ranks(tmp_path / "watched", STRAGGLER)
    assert usual(first, "comm_ms") > 29
    assert usual(second, "other_ms") > 29
    assert usual(first, "comm_ms") > max(usual(second, "comm_ms"), usual(first, "backward_ms"))
    assert not first.warnings + second.warnings
    bare = run_ranks(tmp_path / "bare", STRAGGLER, watched=False)
    assert [result.weights for result in (first, second)] == [result.weights for result in bare]


def test_copying_into_the_bucket_is_not_waiting(tmp_path: Path) -> None:
    """A gradient of 40 MB is copied after it is ready, for milliseconds; alone in a group nobody waits."""
    with watching(tmp_path) as watch:
        model = DistributedDataParallel(nn.Linear(1000, 10_000, bias=False))
        optimizer = sgd(model)
        for _ in range(10):
            optimizer.zero_grad()
            model(torch.randn(2, 1000)).mean().backward()
            optimizer.step()
    assert model._get_ddp_logging_data()["iteration"] > 0
    assert all(row["comm_ms"] < row["collective_ms"] for row in watch.rows[4:])


#: One after the other, each in eight steps: modules whose passes are not the ordinary ones.
ODD = """
    from torch.autograd import Function

    class Slow(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            time.sleep(0.03)  # arithmetic of a part that is not wrapped
            return gradient

    class Detached(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(*[nn.Linear(8, 8) for _ in range(50)])
            self.head = nn.Linear(8, 1)

        def forward(self, x):
            hidden = self.body(x)
            return hidden, self.head(hidden.detach())

    def partial(model, x):
        for output in model(x):
            output.pow(2).mean().backward()

    def aside(model, x):
        loss = model(x).pow(2).mean()
        with model.no_sync():
            time.sleep(0.03)
            more = model(x + 1).mean()
        (loss + more).backward()

    def plain(model, x):
        model(x).pow(2).mean().backward()

    kept, weights = [], []

    def train(model, step):
        kept.append(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for number in range(8):
            if rank == 1:
                time.sleep(0.03)
            optimizer.zero_grad()
            step(model, torch.randn(4, 8, generator=torch.Generator().manual_seed(10 * number + rank)))
            optimizer.step()
        weights.extend(parameter.detach().clone() for parameter in model.parameters())

    class Below(nn.Module):
        def __init__(self):
            super().__init__()
            self.own, self.wrapped = nn.Linear(8, 8), DistributedDataParallel(nn.Linear(8, 1))

        def forward(self, x):
            return self.wrapped(Slow.apply(self.own(x)))

    train(DistributedDataParallel(Detached()), partial)
    train(DistributedDataParallel(nn.Linear(8, 1)), aside)
    train(DistributedDataParallel(nn.Linear(8, 1), static_graph=True), plain)
    kept.clear()
    train(Below(), plain)
    if probe is not None:
        probe.recorder.refresh()
    kept.clear()
    train(nn.Linear(8, 1), plain)
    model = nn.ParameterList(weights)
"""


class Odd:
    """What two ranks told of ODD: by rank, and by the part of it."""

    PARTS = ("partial", "aside", "static", "below", "plain")

    def __init__(self, folder: Path) -> None:
        self.ranks = run_ranks(folder / "watched", ODD)
        self.bare = run_ranks(folder / "bare", ODD, watched=False)

    def of(self, part: str, key: str, rank: int = 0) -> list[float]:
        """A column of that part's steps."""
        first = 8 * self.PARTS.index(part)
        return self.ranks[rank].columns[key][first : first + 8]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Odd:
    """Two trainings of two ranks, for all the tests below."""
    return Odd(tmp_path_factory.mktemp("odd"))


def test_odd_passes_change_no_result_either(odd: Odd) -> None:
    """To the last bit, and nothing of ours fails."""
    assert [result.weights for result in odd.ranks] == [result.weights for result in odd.bare]
    assert not [warning for result in odd.ranks for warning in result.warnings]
    assert [len(result.columns["syncs"]) for result in odd.ranks] == [8 * len(Odd.PARTS)] * 2


def test_a_pass_that_leaves_a_few_parameters_out_waits_for_nobody(odd: Odd) -> None:
    """Two of 102 are left to the second pass: there it is exchanged and waited, once."""
    assert odd.of("partial", "syncs") == [1.0] * 8
    assert median(odd.of("partial", "comm_ms")[2:]) > 20 > median(odd.of("partial", "comm_ms", 1)[2:])


def test_a_forward_pass_aside_moves_no_beginning(odd: Odd) -> None:
    """Under no_sync the reducer does not begin anew: its times count from the forward pass before."""
    assert odd.of("aside", "syncs") == [1.0] * 8
    assert median(odd.of("aside", "comm_ms")[2:]) > 20 > median(odd.of("aside", "comm_ms", 1)[2:])


def test_a_static_graphs_first_pass_is_not_measured(odd: Odd) -> None:
    """Torch times no gradient in it, and exchanges all the same: it is not told that it did not."""
    first, *others = odd.of("static", "syncs")
    assert math.isnan(first)
    assert others == [1.0] * 7
    assert median(odd.of("static", "comm_ms")[3:]) > 20


def test_arithmetic_below_a_wrapped_part_is_not_waiting(odd: Odd) -> None:
    """It cannot be told from waiting, but in the passes that torch measures: those are told as a fact."""
    assert odd.of("below", "syncs") == [1.0] * 8
    assert odd.of("below", "comm_ms")[4:] == [0.0] * 4
    late = odd.ranks[1].facts["ddp"]
    assert late["sampled"] >= 4
    assert late["exposed_ms"] < 30


def test_a_training_after_the_last_wrapped_one_has_no_such_numbers(odd: Odd) -> None:
    """Its modules are gone: zero exchanges would be a measurement."""
    assert all(math.isnan(value) for value in odd.of("plain", "syncs"))


class Seldom(Branches):
    """Leaves out a layer in all calls but the first, and in those long after torch stops measuring."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.first(features) + (self.second(features) if self.calls < 30 else 0)


def test_a_parameter_that_is_left_out_late_is_seen(tmp_path: Path) -> None:
    """Torch itself looks at the first ten iterations and at every hundredth; a branch may come in between."""
    with watching(tmp_path) as watch:
        model = DistributedDataParallel(Seldom(), find_unused_parameters=True)
        train(model, epochs=6)
    fact = watch.facts()["ddp"]
    assert fact["unused_parameter_size"] > 0
    assert fact["iterations"] > 20
    train(model, epochs=2)
    assert model._get_ddp_logging_data()["iteration"] == fact["iterations"]
