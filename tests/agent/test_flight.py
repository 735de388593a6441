"""Dumps of torch's flight recorder: read as plain data, and nothing else."""

from __future__ import annotations

import contextlib
import os
import pickle
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gloo_ranks import run_ranks
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.agent import flight
from monitor.agent.flight import ENTRIES, FlightError, newest, read
from monitor.diagnosis.signals.flight_recorder import analyse

ENTRY = {"process_group": ("0", "default_pg"), "collective_seq_id": 7, "state": "scheduled", "retired": False}


def dump(path: Path, *entries: dict[str, Any]) -> Path:
    path.write_bytes(pickle.dumps({"version": "2.9", "pg_config": {}, "entries": list(entries)}))
    return path


def test_entries_are_read_without_stacks(tmp_path: Path):
    """Only what the analysis needs, as JSON can hold it."""
    found = read(dump(tmp_path / "a", {**ENTRY, "frames": [{"name": "main"}], "is_p2p": False}))
    assert found["entries"][0]["process_group"] == ["0", "default_pg"]
    assert "frames" not in found["entries"][0]


def test_unfinished_entries_come_before_the_newest(tmp_path: Path):
    """A long recording is cut where it matters least."""
    done = [{**ENTRY, "collective_seq_id": n, "state": "completed"} for n in range(3 * ENTRIES)]
    found = read(dump(tmp_path / "a", ENTRY, *done))["entries"]
    assert (found[0]["collective_seq_id"], found[-1]["collective_seq_id"]) == (7, 3 * ENTRIES - 1)
    assert len(found) == ENTRIES + 1


class Evil:
    """Runs a command when it is unpickled the ordinary way."""

    def __reduce__(self) -> Any:
        return os.system, ("touch evil",)


def test_nothing_in_a_dump_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A file in /tmp may be anybody's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(pickle.dumps({"entries": [Evil()]}))
    with pytest.raises(FlightError, match="wants to load"):
        read(tmp_path / "a")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("raw", [b"", b"no pickle", pickle.dumps([1]), pickle.dumps({"entries": 3})])
def test_what_is_no_dump_is_refused(raw: bytes, tmp_path: Path):
    """In one line."""
    (tmp_path / "a").write_bytes(raw)
    with pytest.raises(FlightError):
        read(tmp_path / "a")


def test_a_huge_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Before it is unpickled."""
    monkeypatch.setattr(flight, "MOST_BYTES", 10)
    with pytest.raises(FlightError, match="more than 10 bytes"):
        read(dump(tmp_path / "a", ENTRY))


@given(raw=st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_a_dump_or_refused(raw: bytes, tmp_path_factory: pytest.TempPathFactory):
    """No other exception, whatever lies there."""
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(raw)
    with contextlib.suppress(FlightError):
        assert isinstance(read(path), dict)


def test_the_rank_says_where_its_dumps_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By the variable it was started with; an older file is of an older hang."""
    dump(tmp_path / "trace_3", ENTRY)
    env = {"TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "trace_")}
    monkeypatch.setattr(flight.proc, "environment", lambda pid: env)
    monkeypatch.setattr(flight, "DEFAULT_PATHS", ())
    assert newest(1, 3, time.time() - 60) is not None
    assert newest(1, 3, time.time() + 60) is None
    assert newest(1, 4, 0) is None


#: Gloo's thread notes that a collective is done up to milliseconds after who waited for it goes on.
HANG = """
    import pickle
    from torch._C._distributed_c10d import _dump_fr_trace
    model = nn.Linear(2, 2)
    dist.all_reduce(torch.ones(2))
    while not pickle.loads(_dump_fr_trace())["entries"][0]["retired"]:
        time.sleep(0.001)
    if rank == 0:
        waits = dist.all_reduce(torch.ones(2), async_op=True)
    Path(f"trace_{rank}").write_bytes(_dump_fr_trace())
    if rank == 1:
        while not Path("trace_0").exists():
            time.sleep(0.01)
        waits = dist.all_reduce(torch.ones(2), async_op=True)
    waits.wait()
"""


def test_two_real_ranks_of_which_one_does_not_come(tmp_path: Path):
    """What gloo records leads to the rank that is missing."""
    run_ranks(tmp_path, HANG, watched=False)
    found = analyse({rank: read(tmp_path / f"trace_{rank}") for rank in range(2)})
    assert found is not None
    assert (found.culprits, found.kind) == ((1,), "missing")


def test_a_dump_is_looked_for_when_a_rank_waits_in_a_collective(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """And told beside the stall; of a rank that hangs in its loader it would say nothing."""
    dump(tmp_path / "trace_3", ENTRY)
    monkeypatch.setattr(flight, "DEFAULT_PATHS", (str(tmp_path / "trace_"),))
    tape = SimpleNamespace(pid=os.getpid(), rank=3, wall_ns=0)
    waits, loads = {"kind": "stall", "cause_code": "collective"}, {"kind": "stall", "cause_code": "loader"}
    told = flight.recorded(tape, [waits])  # type: ignore[arg-type]
    assert [(event["kind"], event["rank"], len(event["dump"]["entries"])) for event in told] == [
        ("flight", 3, 1)
    ]
    assert flight.recorded(tape, [loads]) == flight.recorded(tape, []) == []  # type: ignore[arg-type]
