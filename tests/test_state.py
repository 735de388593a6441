"""Tokens, ports and locks: private to the user, whole or not there, and let go by whoever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from monitor import state
from monitor.state import HubState, claim, held, load_hub, private, save_hub, write_private

RUNS = Path("/somewhere/runs")


def hub(**changes: object) -> HubState:
    told: dict[str, object] = {
        "port": 7007,
        "viewer_token": "see",
        "ingest_token": "send",
        "run_dir": str(RUNS),
    }
    return HubState(**{**told, **changes})  # type: ignore[arg-type]


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_state_folder_is_the_users_alone(own_state: Path) -> None:
    """Made with mode 0700, and put right where it was wider."""
    assert (state.state_dir(), mode(own_state)) == (own_state, 0o700)
    own_state.chmod(0o755)
    state.state_dir()
    assert mode(own_state) == 0o700


def test_where_the_state_folder_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """MONITOR_STATE_DIR, else XDG's, else below home."""
    monkeypatch.delenv("MONITOR_STATE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert state.state_dir() == tmp_path / ".local/state/torchvitals"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state.state_dir() == tmp_path / "xdg/torchvitals"


def test_where_runs_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As said, else MONITOR_RUN_DIR, else XDG's data folder; nothing is created by asking."""
    assert state.run_dir(tmp_path / "here") == tmp_path / "here"
    assert state.run_dir() == tmp_path / "runs"
    monkeypatch.delenv("MONITOR_RUN_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert state.run_dir() == tmp_path / "data/torchvitals/runs"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_somebody_elses_folder_is_refused(tmp_path: Path) -> None:
    """A folder in /tmp that another user made first is no place for tokens."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    with pytest.raises(PermissionError, match="another user"):
        private(folder)


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    """An OSError, which turns monitoring off."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        private(tmp_path / "file")


def test_the_spool_lies_below_the_state_folder(own_state: Path) -> None:
    """On a local disk; one folder a run."""
    assert state.spool_dir("run-1") == own_state / "spool" / "run-1"
    assert mode(own_state / "spool" / "run-1") == 0o700


def test_a_spool_is_never_on_a_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the state folder is on NFS, tapes lie in the local temporary folder."""
    monkeypatch.setattr(state, "on_network", lambda path: True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "local"))
    (tmp_path / "local").mkdir()
    assert state.spool_dir("run-1") == tmp_path / "local" / f"torchvitals-{os.getuid()}" / "run-1"


def test_a_hub_is_remembered() -> None:
    """Port and tokens outlive it, in a file that only the user reads."""
    save_hub(hub())
    assert load_hub(RUNS) == hub()
    assert mode(state.hub_files(RUNS)[0]) == 0o600
    assert load_hub(Path("/other/runs")) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"port": 7007}', '"text"'])
def test_a_hubs_file_that_makes_no_sense_is_none(text: str) -> None:
    """It is as if no hub had been there."""
    state.hub_files(RUNS)[0].write_text(text)
    assert load_hub(RUNS) is None


def test_addresses() -> None:
    """What a person opens: with the token, never `0.0.0.0`, with brackets around IPv6."""
    assert hub().url == "http://127.0.0.1:7007/?token=see"
    assert hub(host="0.0.0.0").base == "http://127.0.0.1:7007/"
    assert hub(host="::1").base == "http://[::1]:7007/"


def test_a_private_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """What cannot be written leaves the old content and no half of the new."""
    path = tmp_path / "note.json"
    write_private(path, {"a": 1})
    with pytest.raises(TypeError):
        write_private(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["note.json"]


def test_a_claim_is_one_processs(tmp_path: Path) -> None:
    """While it is held nobody else gets it, from within this process neither."""
    path = tmp_path / "lock"
    assert not held(path)
    handle = claim(path)
    assert handle is not None
    assert claim(path) is None
    assert held(path)
    os.close(handle)
    assert not held(path)


HOLD = """
import sys
from pathlib import Path
from monitor.state import claim
handle = claim(Path(sys.argv[1]))
print(handle is not None, flush=True)
sys.stdin.read()
"""


def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    """Killed, it has let go: no stale claim can be left."""
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        assert held(path)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert not held(path)
    assert claim(path) is not None


def test_a_claim_is_not_inherited(tmp_path: Path) -> None:
    """A program that is started meanwhile does not hold it by accident."""
    path = tmp_path / "lock"
    handle = claim(path)
    assert handle is not None
    with subprocess.Popen(["sleep", "30"], close_fds=False) as other:
        os.close(handle)
        assert not held(path)
        other.kill()


def test_settings(own_state: Path) -> None:
    """One JSON object in the private folder; nothing where there is none, and a word where it is broken."""
    assert (state.settings(), state.alert_addresses()) == ({}, ())
    path = state.state_dir() / "settings.json"
    path.write_text('{"alerts": ["ntfy://a", ""]}')
    assert state.alert_addresses() == ("ntfy://a",)
    for broken in ("{", "[]", '{"alerts": 5}'):
        path.write_text(broken)
        assert state.alert_addresses() == ()
    path.write_text("[]")
    with pytest.raises(ValueError, match=r"settings\.json holds one JSON object"):
        state.settings()
