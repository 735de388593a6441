"""`torchvitals report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from batches import RUN, Training

from monitor.cli import main
from monitor.pipeline import Pipeline


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder with one run that was killed."""
    pipeline, training = Pipeline(tmp_path / "runs"), Training()
    pipeline.take(training.start())
    pipeline.take(training.batch(50, training.killed()))
    pipeline.close()
    return tmp_path / "runs"


def test_text(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A person gets text, from the folder that the environment names."""
    assert main(["report", "latest"]) == 0
    assert capsys.readouterr().out.startswith("digits: killed, 50 steps")


@pytest.mark.parametrize("file", ["-", "out.json"])
def test_json(kept: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, file: str) -> None:
    """A script gets the contract's JSON, in a file or on the standard output."""
    where = file if file == "-" else str(tmp_path / file)
    assert main(["report", RUN, "--json", where, "--run-dir", str(kept)]) == 0
    out = capsys.readouterr().out
    found = json.loads(out if file == "-" else Path(where).read_text())
    assert (found["run"], found["status"], found["steps"]) == (RUN, "killed", 50)


def test_mistakes(kept: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """One line that says what is wrong and what to do, status 2, no traceback."""
    for words, says in (
        (["report", "nobody"], "torchvitals ls"),
        (["report", RUN, "--json", str(tmp_path / "no" / "folder")], "give another file"),
    ):
        assert main(words) == 2
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1
    (kept / RUN / "store.sqlite").write_text("no database " * 999)
    assert main(["report", RUN]) == 2
    assert "not a torchvitals run store" in capsys.readouterr().err


def test_files(kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Several files at once, nothing printed; a file is only written whole or refused."""
    names = {"html": "<!doctype html>", "csv": "step,t_s", "perfetto": '{"displayTimeUnit"'}
    words = [word for name in names for word in (f"--{name}", str(tmp_path / name))]
    assert main(["report", RUN, *words]) == 0
    assert {name: (tmp_path / name).read_text().startswith(head) for name, head in names.items()} == {
        "html": True,
        "csv": True,
        "perfetto": True,
    }
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("words", "says"), [([], "Status"), (["--language", "zh-CN"], "状态")])
def test_the_language_of_the_page(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    """English unless told otherwise."""
    assert main(["report", RUN, "--html", str(tmp_path / "report.html"), *words]) == 0
    assert says in (tmp_path / "report.html").read_text()


def test_a_language_that_there_is_not(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Is refused, and those that there are are named."""
    with pytest.raises(SystemExit) as ended:
        main(["report", RUN, "--html", "-", "--language", "de"])
    assert ended.value.code == 2
    assert "zh-CN" in capsys.readouterr().err


def test_a_part_on_the_standard_output(kept: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """`torchvitals report latest --csv - --stream … --from … --to … | …`."""
    assert main(["report", RUN, "--csv", "-", "--stream", "rank/0", "--from", "0.03", "--to", "0.07"]) == 0
    lines = capfdbinary.readouterr().out.splitlines()
    assert [line.split(b",")[0] for line in lines] == [b"step", b"1", b"2"]


def test_mistakes_about_files(kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stream that is not there, a folder that is not there: one line, status 2, and no empty file."""
    for words, says in (
        (["--csv", str(tmp_path / "a"), "--stream", "rank/5"], "rank/0"),
        (["--html", str(tmp_path / "no" / "b")], "give another file to --html"),
    ):
        assert main(["report", RUN, *words]) == 2
        error = capsys.readouterr().err
        assert (says in error, error.count("\n")) == (True, 1)
    assert not (tmp_path / "a").exists()
