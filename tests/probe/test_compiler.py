"""Breaks and recompilations are told with the user's own line and torch's own reason."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import FEATURES, learn, net, sgd
from torch import nn
from watching import watching

from monitor.probe import compiler
from monitor.probe.compiler import Compiler

pytestmark = pytest.mark.filterwarnings("ignore")


class Talking(nn.Module):
    """Prints in the middle of its forward pass, which the compiler cannot follow."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        out = self.inner(features)
        print(end="")
        return out + 1


BREAK = Talking.forward.__code__.co_firstlineno + 2


@pytest.fixture(autouse=True)
def fresh() -> None:
    """No records of earlier compilations."""
    import torch._dynamo.utils as records

    torch._dynamo.reset()
    records.counters.clear()
    records.clear_compilation_metrics()
    records.graph_break_reasons.clear()


def compiled(model: nn.Module, *sizes: int) -> None:
    call = torch.compile(model, backend="eager", dynamic=False)
    for size in sizes:
        call(torch.zeros(size, FEATURES))


def test_breaks_have_the_users_line() -> None:
    """Reason, file and line of each break, and how often."""
    compiled(Talking(), 2)
    facts = Compiler().facts(step=1)
    assert facts is not None
    (found,) = facts["graph_breaks"]
    assert (found["location"], found["count"]) == (f"tests/probe/test_compiler.py:{BREAK}", 1)
    assert "print" in found["reason"]
    assert facts["unique_graphs"] == 2


class Simple(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = net()

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.inner(features)


def test_recompilations_have_their_reason_and_their_last_step() -> None:
    """They are added up over all times that were asked, and each is counted once."""
    result, model = Compiler(), Simple()
    compiled(model, 2, 3)
    first = result.facts(step=10)
    assert result.facts(step=20) == first
    compiled(model, 2, 3, 4)
    (found,) = (result.facts(step=30) or {})["recompiles"]
    assert (found["function"], found["count"], found["last_step"]) == ("forward", 2, 30)
    # torch 2.4 writes L['features']
    assert re.match(r"tensor '(L\[')?features('\])?' size mismatch at index 0", found["reason"])
    assert found["location"] == f"tests/probe/test_compiler.py:{Simple.forward.__code__.co_firstlineno}"


def test_giving_up_is_told() -> None:
    """Once torch has hit its limit of recompilations, it runs the function as it is: that is a fact."""
    compiled(Simple(), *range(2, 5))
    result = Compiler()
    before = result.facts(step=1)
    compiled(Simple(), *range(5, 14))
    after = result.facts(step=2)
    assert (before or {})["limit_hit"] is False
    assert (after or {})["limit_hit"] is True


def test_a_run_without_the_compiler_has_no_such_fact(tmp_path: Path) -> None:
    """torch.compile was not used: nothing is said, and nothing imported."""
    with watching(tmp_path) as watch:
        model = net()
        optimizer = sgd(model)
        learn(model, optimizer, (torch.zeros(2, FEATURES), torch.zeros(2, 1)))
    assert "compile" not in watch.facts()
    code = (
        "import sys; from monitor.probe.compiler import Compiler; import torch;"
        "print(Compiler().facts(1), 'torch._dynamo' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "None False\n"


def test_a_compiled_training_has_the_fact(tmp_path: Path) -> None:
    """The probe writes it; none of the breaks is ours."""
    with watching(tmp_path) as watch:
        model = Talking()
        call = torch.compile(model, backend="eager")
        optimizer = sgd(model)
        for size in (4, 4, 5):
            learn(call, optimizer, (torch.zeros(size, FEATURES), torch.zeros(size, 1)))
    fact = watch.facts()["compile"]
    assert {one["location"] for one in fact["graph_breaks"]} == {f"tests/probe/test_compiler.py:{BREAK}"}
    assert fact["location"] == f"tests/probe/test_compiler.py:{BREAK - 2}"


def counted(**reasons: int) -> Any:
    """Counters like torch's, of a version that keeps no records of breaks."""
    counters: Any = defaultdict(dict)
    counters["graph_break"] = dict(reasons)
    return counters


def test_without_records_the_counters_stand() -> None:
    """Breaks that torch only counted have no line, and are told all the same, most frequent first."""
    assert compiler.breaks(counted(print=2, item=5), ()) == [
        {"reason": "item", "location": None, "count": 5},
        {"reason": "print", "location": None, "count": 2},
    ]


def test_no_more_than_some() -> None:
    """However many kinds of breaks there are, the fact stays small."""
    many = {f"reason {number}" * 100: number for number in range(1, 99)}
    found = compiler.breaks(counted(**many), ())
    assert len(found) == compiler.REASONS
    assert max(len(one["reason"]) for one in found) <= compiler.REASON_CHARS
