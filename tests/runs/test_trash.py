"""A deleted run can be brought back for an hour, and is then gone; nothing else is ever touched."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from finished_runs import keep

from monitor.runs import folders, summaries
from monitor.runs.marks import mark
from monitor.runs.trash import FOLDER, GRACE_S, KeptError, delete, deleted, empty, restore

NOW = 1_800_000_000.0
RUN = "20261130-010000-digits-aaaa"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = keep(tmp_path, RUN)
    mark(folder, {"note": "keep me"})
    return folder


def test_delete_and_undo(run: Path) -> None:
    """It is out of the list, and back as it was, its note with it."""
    delete(run, NOW)
    assert folders(run.parent) == []
    assert deleted(run.parent) == [{"run": RUN, "until_unix_s": NOW + GRACE_S}]
    assert stat.S_IMODE((run.parent / FOLDER).stat().st_mode) == 0o700
    assert restore(run.parent, RUN) == run
    (found,) = summaries(run.parent)
    assert (found["run"], found["note"], found["steps"]) == (RUN, "keep me", 400)
    assert deleted(run.parent) == []


def test_gone_after_an_hour(run: Path) -> None:
    """Not a second before, and for good after."""
    delete(run, NOW)
    empty(run.parent, NOW + GRACE_S - 1)
    assert len(deleted(run.parent)) == 1
    empty(run.parent, NOW + GRACE_S + 1)
    assert deleted(run.parent) == []
    assert list((run.parent / FOLDER).iterdir()) == []
    with pytest.raises(KeptError, match="not in the trash"):
        restore(run.parent, RUN)


def test_newest_first(tmp_path: Path) -> None:
    """What was deleted last is offered first."""
    for i, name in enumerate(("a", "b", "c")):
        delete(keep(tmp_path, name), NOW + i)
    assert [gone["run"] for gone in deleted(tmp_path)] == ["c", "b", "a"]


def test_a_folder_with_more_in_it_stays(run: Path) -> None:
    """A file that is not ours (a checkpoint somebody put there) keeps the run where it is."""
    (run / "model.pt").write_text("weeks of work")
    with pytest.raises(KeptError, match=r"model\.pt"):
        delete(run, NOW)
    assert (run / "model.pt").exists()


def test_a_link_is_not_deleted(run: Path, tmp_path: Path) -> None:
    """Neither the link nor what it leads to."""
    link = tmp_path / "link"
    link.symlink_to(run)
    with pytest.raises(KeptError, match="is a link"):
        delete(link, NOW)
    assert run.exists()
    assert link.exists()


def test_undo_never_overwrites(run: Path) -> None:
    """A run of that name came again meanwhile: it stays, and so does the one in the trash."""
    delete(run, NOW)
    keep(run.parent, RUN)
    with pytest.raises(KeptError, match="again"):
        restore(run.parent, RUN)
    assert len(deleted(run.parent)) == 1
    assert len(folders(run.parent)) == 1


@pytest.mark.parametrize("name", ["../x", "", ".", "..", "/etc", f"0-{RUN}", "nobody", "\0"])
def test_undo_of_what_is_not_there(run: Path, name: str) -> None:
    """A name is only ever looked for."""
    delete(run, NOW)
    with pytest.raises(KeptError):
        restore(run.parent, name)


def test_what_else_lies_in_the_trash_stays(run: Path) -> None:
    """Folders of another name and links in the trash are no deleted runs."""
    delete(run, NOW)
    outside = run.parent / "outside"
    outside.mkdir()
    (run.parent / FOLDER / "stranger").mkdir()
    (run.parent / FOLDER / "5-link").symlink_to(outside)
    assert len(deleted(run.parent)) == 1
    empty(run.parent, NOW + 2 * GRACE_S)
    assert outside.exists()
    assert sorted(path.name for path in (run.parent / FOLDER).iterdir()) == ["5-link", "stranger"]


def test_no_trash(tmp_path: Path) -> None:
    """A folder where nothing was ever deleted."""
    empty(tmp_path)
    assert deleted(tmp_path / "nowhere") == []


def test_a_trash_that_leads_elsewhere(run: Path, tmp_path: Path) -> None:
    """Where somebody made `.trash` a link, nothing is moved there, listed from there, or removed there."""
    elsewhere = tmp_path / "home"
    old = keep(elsewhere, f"{NOW:.0f}-thesis")
    (tmp_path / FOLDER).symlink_to(elsewhere)
    empty(tmp_path, NOW + 10 * GRACE_S)
    assert deleted(tmp_path) == []
    with pytest.raises(KeptError, match="link"):
        delete(run, NOW)
    with pytest.raises(KeptError):
        restore(tmp_path, "thesis")
    assert old.is_dir()
    assert run.is_dir()


def test_only_our_files_are_ever_removed(run: Path) -> None:
    """Neither somebody's folder of a similar name, nor a file that somebody saved into a deleted run."""
    delete(run, NOW)
    bin_ = run.parent / FOLDER
    (bin_ / "2024-thesis").mkdir()
    (bin_ / f"{NOW:.0f}-{RUN}" / "model.pt").write_text("weeks of work")
    empty(run.parent, NOW + 10 * GRACE_S)
    assert sorted(path.name for path in bin_.rglob("*")) == sorted(
        ["2024-thesis", f"{NOW:.0f}-{RUN}", "model.pt"]
    )


@pytest.mark.parametrize(
    "name", ["marks.json.4711-140737.part", "stall-rank-12-step-34.txt", "stall-rank-0-step--1.txt"]
)
def test_whatever_we_left_keeps_no_run(run: Path, name: str) -> None:
    """Half a file of marks of a hub that was killed, and the stacks of a stall, are ours, too."""
    (run / name).write_text("{")
    delete(run, NOW)
    assert folders(run.parent) == []
