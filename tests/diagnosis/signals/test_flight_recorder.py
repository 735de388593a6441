"""Torch's flight recorder, read: who is missing, who is stuck, who called something else."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.diagnosis.signals.flight_recorder import Hang, analyse

DUMPS = Path(__file__).parents[3] / "shared" / "data" / "flight_recorder"


def entry(
    number: int, group: str = "0", called: str = "all_reduce", *, done: bool = False, **more: Any
) -> Any:
    """One collective as torch lists it."""
    return {
        "process_group": (group, f"GROUP_{group}"),
        "collective_seq_id": number,
        "profiling_name": f"nccl:{called}",
        "input_sizes": [[8]],
        "state": "completed" if done else "scheduled",
        "retired": done,
        "is_p2p": False,
        **more,
    }


def dumps(ranks: dict[int, list[Any]], **groups: list[int]) -> dict[int, Any]:
    """Dumps of ranks in group "0", which has all of them, and in others called `g…`."""
    config = {name.removeprefix("g"): {"ranks": str(members)} for name, members in groups.items()}
    config["0"] = {"ranks": str(sorted(ranks))}
    return {rank: {"pg_config": config, "entries": entries} for rank, entries in ranks.items()}


def hang(ranks: dict[int, list[Any]], **groups: list[int]) -> Hang:
    found = analyse(dumps(ranks, **groups))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("job", "culprits", "kind"), [("gpu_error_1st", (12, 14), "stuck"), ("lock_gil_1st", (9, 14), "missing")]
)
def test_the_ranks_into_which_faults_were_injected(job: str, culprits: tuple[int, ...], kind: str):
    """Sixteen ranks of a Megatron job, tensor, pipeline and expert parallel: the two that broke, no other."""
    if not DUMPS.is_dir():
        pytest.skip(f"recordings of real hangs are not part of the repository: no {DUMPS}")
    found = analyse(
        {
            int(path.name.removeprefix("_dump_")): pickle.loads(path.read_bytes())
            for path in (DUMPS / job).glob("_dump_*")
        }
    )
    assert found is not None
    assert (found.culprits, found.kind) == (culprits, kind)


def test_ranks_that_are_alike_have_no_culprit():
    """All wait in the same collective, or in none."""
    assert analyse(dumps({0: [entry(5)], 1: [entry(5)]})) is None
    assert analyse(dumps({0: [entry(5, done=True)], 1: [entry(5, done=True)]})) is None
    assert analyse({}) is None


def test_who_never_came_is_missing():
    """Ranks 0 and 2 wait in number 5, rank 1 has finished 4 and nothing since."""
    found = hang({0: [entry(5)], 1: [entry(4, done=True)], 2: [entry(5)]})
    assert found == Hang((1,), "missing", "GROUP_0", "all_reduce")
    assert found.text == "missing in all_reduce of GROUP_0"


def test_who_has_no_entries_at_all_is_missing():
    """Its recorder dropped what was finished."""
    assert hang({0: [entry(5)], 1: []}).culprits == (1,)


def test_a_rank_without_a_dump_is_not_blamed():
    """Nothing is known of it."""
    seen = dumps({0: [entry(5)], 1: [entry(5)], 2: []})
    del seen[2]
    assert analyse(seen) is None


def test_who_has_not_finished_what_others_have_is_stuck():
    """All came, and the device of rank 1 did not get through."""
    found = hang({0: [entry(4, done=True), entry(5)], 1: [entry(4), entry(5)]})
    assert (found.culprits, found.kind) == ((1,), "stuck")


def test_who_waits_elsewhere_for_a_missing_one_is_no_cause():
    """Rank 1 hangs; rank 0 waits for it in a group of two, and so is missing in the large one."""
    ranks = {0: [entry(9, "1")], 1: [], 2: [entry(5)], 3: [entry(5)]}
    assert hang(ranks, g1=[0, 1]).culprits == (1,)


def test_a_rank_that_called_something_else():
    """The program's ranks disagree: under the same number, or on the size."""
    ranks = {0: [entry(5)], 1: [entry(5)], 2: [entry(5, called="broadcast")]}
    assert (hang(ranks).culprits, hang(ranks).kind) == ((2,), "mismatch")
    sizes = {0: [entry(5)], 1: [entry(5)], 2: [entry(5, input_sizes=[[9]])]}
    assert hang(sizes).culprits == (2,)


def test_different_sizes_are_allowed_where_ranks_may_differ():
    """Each gives its own part."""
    ranks = {0: [entry(5, called="all_to_all")], 1: [entry(5, called="all_to_all", input_sizes=[[1]])]}
    assert analyse(dumps(ranks)) is None


def test_a_pipeline_stage_that_does_not_answer():
    """Stage 1 waits for stage 2, and 0 for 1: stage 2 waits for nobody."""
    calls = {0: "recv 0<-1", 1: "recv 1<-2"}
    ranks = {rank: [entry(1, called=call, is_p2p=True)] for rank, call in calls.items()}
    assert hang({**ranks, 2: []}).culprits == (2,)


def test_gloo_names_its_group_in_two_ways():
    """Group 0 in the entries, nameless in the configuration."""
    config = {"": {"ranks": "[0, 1]"}}
    seen = {0: {"pg_config": config, "entries": [entry(5)]}, 1: {"pg_config": config, "entries": []}}
    found = analyse(seen)
    assert found is not None
    assert found.culprits == (1,)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
odd_entries = st.fixed_dictionaries({}, optional=dict.fromkeys(entry(1), anything)) | anything


@given(
    st.dictionaries(st.integers(0, 3), st.fixed_dictionaries({"entries": st.lists(odd_entries, max_size=3)}))
)
@settings(max_examples=100, deadline=None)
def test_whatever_a_dump_holds_is_no_reason_to_fail(seen: dict[int, Any]):
    """Dumps come from other processes, and from other versions of torch."""
    analyse(seen)
