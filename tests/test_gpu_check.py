"""The check of GPU figures: what it does without a GPU, and that scripts, comparisons and table work.

What it finds on a GPU nobody has seen yet: the machines that run these tests have none.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import runpy
import subprocess
import sys
from array import array
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import torch
from sources import ROOT

BENCHMARKS = ROOT / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from gpu_check import TWINS, Twin, codes, examine, main  # noqa: E402
from gpu_rows import (  # noqa: E402
    copy_rows,
    device_rows,
    fits_row,
    in_message,
    memory_rows,
    nvml_rows,
    oom_rows,
    ratio,
    time_rows,
)
from gpu_runs import Checker, Outcome, bare_uuid, last_line, read  # noqa: E402
from gpu_table import BEGIN, END, Row, found_row, render, write  # noqa: E402

from monitor.batch import Batch, Block  # noqa: E402
from monitor.diagnosis.detectors import __path__ as detectors  # noqa: E402
from monitor.store import Store  # noqa: E402

NO_GPU = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}


def started(*words: str) -> subprocess.CompletedProcess[str]:
    """The check, as a user starts it, where torch sees no GPU."""
    command = [sys.executable, str(BENCHMARKS / "gpu_check.py"), *words]
    return subprocess.run(command, env=NO_GPU, capture_output=True, text=True)


def test_without_a_gpu_nothing_is_claimed() -> None:
    """One line, status 0, and the document is as it was."""
    before = (ROOT / "docs/gpu-check.md").read_text()
    done = started("--write")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "gpu_check: torch sees no GPU here, so nothing was measured and nothing is claimed"
    ]
    assert (ROOT / "docs/gpu-check.md").read_text() == before


def test_every_script_has_its_place() -> None:
    """What is in the folder is what is run, and no other."""
    found = {path.stem for path in (BENCHMARKS / "gpu").glob("*.py")} - {"loop"}
    assert found == {twin.script for twin in TWINS.values()}


def test_every_finding_that_is_wanted_exists() -> None:
    """By the name of its detector."""
    known = {path.stem for path in Path(detectors[0]).rglob("*.py")}
    assert {code for twin in TWINS.values() for code in twin.wanted} <= known


@pytest.fixture
def as_before() -> Iterator[None]:
    """What a script sets is the process's."""
    yield
    torch.set_float32_matmul_precision("highest")


def in_small(twin: str, *options: str) -> dict[str, Any]:
    """Run a script in this process; its last line."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(sys, "argv", [twin, "--device", "cpu", *options])
        patch.syspath_prepend(BENCHMARKS / "gpu")
        runpy.run_path(str(BENCHMARKS / "gpu" / f"{twin}.py"), run_name="__main__")
    return last_line(said.getvalue())


@pytest.mark.usefixtures("as_before")
def test_scripts_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them, in small, on the CPU."""
    monkeypatch.setattr(sys, "argv", ["gpu_check", "--device", "cpu"])
    assert main() == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("{")]
    scripts = dict.fromkeys(twin.script for twin in TWINS.values())
    assert lines == [f"{script}: runs" for script in scripts]


@pytest.mark.usefixtures("as_before")
def test_a_script_tells_what_it_did() -> None:
    """Its last line is JSON, with the steps it made and how long they took."""
    told = in_small("tf32_off", "--steps", "15")
    assert told["steps"] == 15
    assert told["step_ms"] > 0


def test_a_script_stops_in_time() -> None:
    """`--seconds` is obeyed, so that all of them take five minutes."""
    assert in_small("launch_bound", "--seconds", "0.1")["seconds"] >= 0.1


def test_a_watched_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way on the CPU: run, report, store; NVML is stood in for by nothing at all."""

    class Nobody:
        def __init__(self, uuid: str) -> None:
            self.window: tuple[float, float] | None = None

        def stop(self, since: float, until: float) -> dict[str, float]:
            assert 0 < until - since < 60
            return {}

    monkeypatch.setattr("gpu_runs.Bare", Nobody)
    checker = Checker("GPU-none", 0.5)
    monkeypatch.setattr(checker, "_script", lambda script, *_: small_script(script))
    out = checker.watched("tf32_off")
    assert out.report["steps"] == out.told["steps"] > 10
    assert out.means["forward_ms"] > 0
    assert out.report["status"] == "finished"


def small_script(twin: str) -> list[str]:
    """A script in small."""
    return [str(BENCHMARKS / "gpu" / f"{twin}.py"), "--device", "cpu", "--seconds", "0.5"]


# -- figures


def stored(folder: Path) -> Outcome:
    """What is read of a store with two rows of the device."""
    with Store(folder / "store.sqlite", create=True) as store:
        store.set_meta(started_unix_s=1000.0)
        blocks = (
            Block("rank/0", 0, array("d", [1.0, 2.0]), {"forward_ms": array("f", [10, 30])}),
            Block(
                "cuda/0",
                0,
                array("d", [1.0, 2.0]),
                {
                    "cuda_allocated_mb": array("f", [100, 200]),
                    "cuda_allocs": array("f", [10, 30]),
                    "cuda_steps": array("f", [1, 3]),
                    "gpu_forward_ms": array("f", [8, math.nan]),
                },
            ),
            Block("gpu/host/0", 0, array("d", [1.0, 2.0]), {"gpu_util": array("f", [50, 100])}),
        )
        store.append(Batch("run", "host", 1, 2.0, blocks, ({"kind": "oom", "t_s": 1.0, "rank": 0},)))
        out = Outcome()
        assert read(store, out) == (1001.0, 1002.0)
    return out


def test_figures_come_from_the_store(tmp_path: Path) -> None:
    """Means of what was measured, the newest value, and sums."""
    out = stored(tmp_path)
    assert out.means["gpu_util"] == 75
    assert out.means["gpu_forward_ms"] == 8
    assert out.lasts["cuda_allocated_mb"] == 200
    assert out.sums["cuda_allocs"] == 40
    assert [event["kind"] for event in out.events] == ["oom"]


def by_figure(rows: list[Row]) -> dict[str, Row]:
    """Rows by what they are called."""
    return {row.figure: row for row in rows}


def test_memory_beside_torchs(tmp_path: Path) -> None:
    """Ours from the store, theirs from the script; allocations per step of either."""
    out = stored(tmp_path)
    out.told = {"allocated_mb": 201.0, "allocations": 1000, "steps": 100}
    rows = by_figure(memory_rows(out))
    assert rows["allocated, MB"].holds is True
    assert (rows["allocations a step"].ours, rows["allocations a step"].other) == (10, 10)
    assert rows["reserved, MB"].holds is None


def test_samples_beside_a_bare_loops(tmp_path: Path) -> None:
    """Key by key."""
    out = stored(tmp_path)
    out.nvml = {"gpu_util": 30.0}
    assert by_figure(nvml_rows(out))["utilisation, %"].holds is False


def test_the_device_beside_the_scripts_own(tmp_path: Path) -> None:
    """By its UUID, however either writes it; its energy beside its power."""
    out = stored(tmp_path)
    out.uuids = {"agent": {bare_uuid("GPU-AB-1")}, "probe": {bare_uuid("ab-1")}}
    out.means.update(gpu_power_w=200.0, gpu_tensor_activity=30.0)
    out.sums["gpu_energy_j"] = 210.0
    assert out.seconds == 1
    assert [row.holds for row in device_rows(out)] == [True, True, True]
    out.uuids["agent"], out.means["gpu_tensor_activity"] = {"other"}, 1.0
    assert [row.holds for row in device_rows(out)] == [False, True, False]


def test_what_is_not_known_of_a_device_is_not_compared() -> None:
    """No UUID, no power, no activity."""
    assert {row.holds for row in device_rows(Outcome())} == {None}


def test_copies_beside_the_batches() -> None:
    """Bytes by time."""
    out = Outcome({"copied_mb": 700.0, "seconds": 7.0})
    out.means["gpu_pcie_in_mb_per_s"] = 110.0
    assert [row.holds for row in copy_rows(out)] == [True]


@pytest.mark.parametrize(
    ("evidence", "tried", "holds"),
    [({"batch_size_that_fits": 128}, {"steps": 9}, True), ({"batch_size_that_fits": 128}, {}, False)],
)
def test_a_batch_that_should_fit_is_tried(
    evidence: dict[str, Any], tried: dict[str, Any], holds: bool
) -> None:
    """A promise is kept or broken."""
    report = {"findings": [{"code": "memory_headroom", "evidence": evidence}]}
    assert fits_row(Outcome(report=report), tried).holds is holds
    assert fits_row(Outcome(report={"findings": []}), tried).holds is None


class Recorded:
    """A checker whose runs were made before."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = {"step_ms": {"p50": 10.0}, **report}
        self.asked: list[Any] = []

    def watched(self, script: str, env: Any = None) -> Outcome:
        self.asked.append((script, dict(env or {})))
        return Outcome(report=self.report)

    def bare(self, script: str, *options: str) -> dict[str, Any]:
        self.asked.append((script, *options))
        return {}


@pytest.mark.parametrize("name", [name for name, twin in TWINS.items() if not twin.neighbour])
def test_every_twin_is_compared(name: str) -> None:
    """In its environment, its findings last; a run of which nothing was measured claims nothing."""
    checker = Recorded({"findings": []})
    rows = examine(checker, [name])  # type: ignore[arg-type]
    assert checker.asked[0] == (TWINS[name].script, dict(TWINS[name].env))
    assert rows[-1].figure == f"findings of {name}"
    assert rows[-1].holds is not bool(TWINS[name].wanted)
    assert {row.holds for row in rows[:-1]} <= {None}


def test_a_neighbour_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever becomes of the run beside it."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])

    class Failing(Recorded):
        def neighbour(self) -> subprocess.Popen[bytes]:
            return process

        def watched(self, script: str, env: Any = None) -> Outcome:
            raise RuntimeError("no")

    monkeypatch.setitem(TWINS, "shared", Twin("healthy", neighbour=True))
    with pytest.raises(RuntimeError):
        examine(Failing({}), ["shared"])  # type: ignore[arg-type]
    assert process.poll() is not None


def test_times_beside_two_others(tmp_path: Path) -> None:
    """Phase by phase, and their sum beside the profiler's kernels."""
    out = stored(tmp_path)
    out.means.update(gpu_backward_ms=16.0, gpu_optimizer_ms=2.0)
    out.report, out.told = {"step_ms": {"p50": 27.0}}, {"step_ms": 27.1}
    rows = by_figure(time_rows(out, {"forward_ms": 8.1, "backward_ms": 30.0}, {"kernels_ms": 25.0}))
    assert [row.holds for row in rows.values()] == [True, False, None, True, True]


MESSAGE = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.68 GiB of which 1.06 "
    "GiB is free. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 1.34 GiB is reserved"
)


def test_a_memory_error_beside_its_message() -> None:
    """What was asked for, and what was held."""
    out = Outcome()
    out.events = [
        {"kind": "oom", "message": MESSAGE, "requested_mb": 2**31 / 1e6, "categories": {"other": 21_000.0}}
    ]
    assert [row.holds for row in oom_rows(out)] == [True, True]
    assert [row.holds for row in oom_rows(Outcome())] == [None, None]


@pytest.mark.parametrize("message", ["", "Tried to allocate", "Tried to allocate 3 apples"])
def test_a_message_that_says_nothing(message: str) -> None:
    """Is not read."""
    assert in_message({"message": message}, "Tried to allocate") is None


def test_ratios_of_what_is_not_known() -> None:
    """Are not known."""
    assert ratio(None, 1.0) is ratio(1.0, None) is ratio(1.0, 0.0) is None


# -- the table


@pytest.mark.parametrize(
    ("ours", "other", "holds"),
    [
        (100, 101, True),
        (100, 200, False),
        (None, 1, None),
        (1, None, None),
        (math.nan, 1, None),
        (0, 0, True),
    ],
)
def test_figures_agree_within_their_tolerance(ours: Any, other: Any, holds: bool | None) -> None:
    """What was not measured neither agrees nor differs."""
    assert Row("a", ours, other, "b", 0.05).holds is holds


@pytest.mark.parametrize(
    ("ours", "sense", "holds"),
    [
        (90, "most", True),
        (104, "most", True),
        (110, "most", False),
        (90, "least", False),
        (110, "least", True),
    ],
)
def test_some_figures_have_one_side_only(ours: float, sense: Any, holds: bool) -> None:
    """A cost may be less than the aim."""
    row = Row("a", ours, 100.0, "b", 0.05, sense)
    assert row.holds is holds
    assert f"at {sense} 100" in render([row])


@pytest.mark.parametrize(
    ("wanted", "found", "holds"),
    [
        (("tf32_off",), ["tf32_off", "(amp_off)"], True),
        (("amp_off",), ["(amp_off)"], True),
        (("tf32_off",), [], False),
        (("tf32_off",), ["tf32_off", "data_starvation"], False),
        ((), ["(amp_off)"], True),
        ((), ["memory_leak"], False),
    ],
)
def test_findings_are_those_that_must_be(wanted: tuple[str, ...], found: list[str], holds: bool) -> None:
    """All of the wanted ones, and no false alarm beside them."""
    assert found_row("twin", wanted, found).holds is holds


def test_findings_are_read_off_the_report() -> None:
    """Information is put in brackets."""
    report = {
        "findings": [{"code": "amp_off", "severity": "info"}, {"code": "tf32_off", "severity": "warning"}]
    }
    assert codes(report) == ["tf32_off", "(amp_off)"]


ROWS = [Row("power, W", 250.0, 251.25, "bare NVML loop", 0.1), Row("split, MB", None, 3, "torch")]


def test_the_table_says_what_was_not_measured() -> None:
    """It does not pass for agreement."""
    assert render(ROWS).splitlines()[2:] == [
        "| power, W | 250 | 251.2 | bare NVML loop | yes |",
        "| split, MB | – | 3 | torch | not measured |",
    ]


def test_the_document_gets_the_table(tmp_path: Path) -> None:
    """Between its marks, with the device and the day; the rest stays."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    about = {"name": "NVIDIA Test", "torch": "2.13.0", "cuda": "13.0"}
    write(page, ROWS, about, date(2026, 12, 1))
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "NVIDIA Test, torch 2.13.0, CUDA 13.0, 2026-12-01: 1 of 1 agree." in text
    assert "old" not in text


def test_a_document_without_marks_is_left_alone(tmp_path: Path) -> None:
    """Nothing is guessed."""
    page = tmp_path / "page.md"
    page.write_text("no marks")
    with pytest.raises(ValueError, match="lacks the marks"):
        write(page, ROWS, {"name": "a", "torch": "b", "cuda": "c"})
    assert page.read_text() == "no marks"


def test_rows_can_be_written_as_json() -> None:
    """For whoever keeps them."""
    assert json.loads(json.dumps([vars(row) for row in ROWS]))[0]["ours"] == 250
