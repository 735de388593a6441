"""`torchvitals ls`."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import sqlite3
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from batches import Training
from finished_runs import finding, keep

from monitor import runs
from monitor.cli import main
from monitor.cli.ls import table
from monitor.pipeline import Pipeline
from monitor.runs import baselines, marks


def test_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a run, newest first, columns aligned, with the gravest finding or the verdict."""
    pipeline = Pipeline(tmp_path / "runs")
    for name, started, killed in (("digits", 1.8e9, True), ("resnet", 1.9e9, False)):
        training = Training(run=f"20261130-000000-{name}-aaaa")
        pipeline.take(training.start(name=name, started_unix_s=started))
        pipeline.take(training.batch(1500, training.killed() if killed else training.end()))
    pipeline.close()
    assert main(["ls"]) == 0
    head, one, other = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "status", "steps", "steps/s", "began", "finding", "or", "verdict"]
    assert one.startswith("20261130-000000-resnet-aaaa  finished  1,500       50")
    assert other.endswith("process_died")
    assert one.index("finished") == other.index("killed") == head.index("status")


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A script gets the same as JSON."""
    pipeline, training = Pipeline(tmp_path / "other"), Training()
    pipeline.take(training.start())
    pipeline.take(training.batch(50, training.end()))
    pipeline.close()
    assert main(["ls", "--json", "--run-dir", str(tmp_path / "other")]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["run"], found["steps"], found["status"]) == (training.run, 50, "finished")


def test_no_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a run there is a hint, and that is no error."""
    assert main(["ls"]) == 0
    assert "torchvitals run train.py" in capsys.readouterr().out


#: Sets the window's title, clears the screen, forges a line, turns letters around.
STEERS = "\x1b]0;pwn\x07\x1b[2J\x9b2J\rforged\u202e"


def test_no_run_steers_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of somebody else's in the same folder is told as text, by every command."""
    told = finding(
        code=STEERS, cause=STEERS, title=STEERS, advice=STEERS, snippet=STEERS, evidence={"x": STEERS}
    )
    meta = {"name": STEERS, "config": {STEERS: STEERS}, "argv": [STEERS], "verdict": {"text": STEERS}}
    one, other = keep(tmp_path, "one", findings=[told], meta=meta), keep(tmp_path, "other", meta=meta)
    for command in (
        ["ls", "--run-dir", str(tmp_path)],
        ["report", str(one)],
        ["compare", str(one), str(other)],
    ):
        assert main(command) == 0
        said = capsys.readouterr().out
        assert "forged" in said
        assert not set(said) & set("\x1b\x07\x9b\r\u202e")


@pytest.mark.parametrize("began", ["'\"NaN\"'", "'\"long ago\"'", "'-1'", f"'{'9' * 400}'", "'[]'"])
def test_a_beginning_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], began: str) -> None:
    """Of a damaged store: it is listed, without one."""
    file = keep(tmp_path, "one") / "store.sqlite"
    connection = sqlite3.connect(file)
    connection.execute(f"UPDATE meta SET value = {began} WHERE name = 'started_unix_s'")
    connection.commit()
    connection.close()
    assert main(["ls", "--run-dir", str(tmp_path)]) == 0
    assert "–" in capsys.readouterr().out
    assert main(["ls", "--json", "--run-dir", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["started_unix_s"] is None


def listed(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> list[str]:
    """What is printed, line by line."""
    assert main(["ls", "--run-dir", str(folder), *options]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """Three runs: an ordinary one, a baseline with tags, an archived one."""
    for name in ("one", "two", "three"):
        keep(tmp_path, name, findings=[finding()])
    baselines.set_baseline(tmp_path, runs.summary(tmp_path / "two")["project"], "two")
    marks.mark(tmp_path / "two", {"tags": ["lr 0.1", "学习率"]})
    marks.mark(tmp_path / "three", {"archived": True})
    return tmp_path


def test_marks_are_told(marked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which run is the baseline, and its tags; the columns after them stay aligned, Chinese or not."""
    head, *lines = listed(capsys, marked)[:3]
    told = {line.split()[0]: line for line in lines}
    assert "  baseline, lr 0.1, 学习率  " in told["two"]
    assert "baseline" not in told["one"]
    wide = told["two"].index("学习率") + 6 + 2  # three letters of two columns each, and the gap
    assert head.index("finding") == wide


def test_archived_runs_are_hidden_unless_asked_for(marked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As on the page, which says how many there are; a script gets all, and which they are."""
    lines = listed(capsys, marked)
    assert not any(line.startswith("three") for line in lines)
    assert lines[-1] == "archived: 1; torchvitals ls --all shows them"
    (three,) = [line for line in listed(capsys, marked, "--all") if line.startswith("three")]
    assert "  archived  " in three
    assert main(["ls", "--run-dir", str(marked), "--json"]) == 0
    found = {run["run"]: run for run in json.loads(capsys.readouterr().out)}
    assert {name: run["archived"] for name, run in found.items()} == {
        "one": False,
        "two": False,
        "three": True,
    }
    assert (found["two"]["baseline"], found["two"]["tags"]) == (True, ["lr 0.1", "学习率"])


def test_where_all_are_archived_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And not that there are none."""
    keep(tmp_path, "one")
    marks.mark(tmp_path / "one", {"archived": True})
    assert listed(capsys, tmp_path) == ["archived: 1; torchvitals ls --all shows them"]


ROW = ("20261130-031620-digits-1f3a", "unreadable", "1,000,000", "1,234", "3 h 20 min ago")


def test_a_narrow_terminal_gets_two_lines_a_run() -> None:
    """At 80 columns no line is wrapped and no name cut: marks and sentence come below, cut to fit."""
    rows = [(*ROW, "baseline, 学习率", "A sentence that is long. " * 3), (*ROW, "", "stall"), (*ROW, "", "")]
    lines = table(rows, 80).splitlines()
    assert max(map(columns, lines)) <= 80
    assert lines[0].split() == ["run", "status", "steps", "steps/s", "began"]
    assert lines[1] == "  marks · finding or verdict"
    assert [line.startswith(ROW[0]) for line in lines[2:]] == [True, False, True, False, True]
    assert lines[3].startswith("  baseline, 学习率 · A sentence")
    assert lines[3].endswith("…")
    assert lines[5] == "  stall"


def test_a_wide_terminal_and_a_file_get_one_line_a_run() -> None:
    """Whoever reads it with a program gets whole lines, however long."""
    rows = [(*ROW, "x" * 40, "stall")]
    assert table(rows, None) == table(rows, 200)
    assert len(table(rows).splitlines()) == 2


def test_a_column_nobody_needs_is_left_out() -> None:
    """Without marks there is no column of them."""
    assert "marks" not in table([(*ROW, "", "stall")])


def columns(line: str) -> int:
    """Columns of a line with Chinese in it."""
    return len(line) + sum("\u4e00" <= letter <= "\u9fff" for letter in line)


def test_the_terminals_own_width_is_taken(marked: Path) -> None:
    """On a real terminal of 60 columns, by what it says of itself."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    command = [sys.executable, "-m", "monitor", "ls", "--run-dir", str(marked)]
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    subprocess.run(command, stdout=writer, env=env, check=True, timeout=60)
    os.close(writer)
    told = os.read(reader, 65536).decode()
    os.close(reader)
    assert "  baseline, lr 0.1, 学习率 · data_starvation" in told.splitlines()
