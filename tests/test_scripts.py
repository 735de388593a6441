"""The README's two commands: what they refuse, and how they say it. What they do is run by CI itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from sources import ROOT

SCRIPTS = sorted(
    path
    for path in [*(ROOT / "scripts").iterdir(), ROOT / ".ci/run"]
    if path.is_file() and path.suffix != ".py"
)
#: What a script may count on besides Python.
TOOLS = "sh bash dirname basename sed cat cksum find sort mktemp tail rm env printf".split()


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A copy of the scripts, and a PATH with nothing but the usual tools."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("node_modules"))
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, tool
        (tools / tool).symlink_to(found)
    return tmp_path


def demo(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(folder / "bin"), "HOME": str(folder), **env}
    return subprocess.run([folder / "scripts/demo", *words], env=environment, capture_output=True, text=True)


def fake_python(folder: Path, body: str) -> Path:
    path = folder / "bin" / "python3"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_every_script_parses_and_can_be_run(script: Path):
    """The shell that its first line names takes it; all but the shared part are executable."""
    shell = "bash" if "bash" in script.read_text().splitlines()[0] else "sh"
    assert subprocess.run([shell, "-n", script], capture_output=True, text=True).stderr == ""
    assert os.access(script, os.X_OK) or script.name == "lib.sh"


def test_ci_runs_what_developers_run():
    """.ci/run calls scripts/test and nothing else."""
    lines = [line for line in (ROOT / ".ci/run").read_text().splitlines() if not line.startswith("#")]
    assert lines == ['exec "$(dirname "$0")/../scripts/test"']


def test_demo_refuses_an_unknown_option(bare: Path):
    """One line that says what is known, exit status 2, and nothing is installed."""
    done = demo(bare, "--second", "3")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "--seconds N" in done.stderr
    assert not (bare / ".venv").exists()


def test_demo_without_python_says_so(bare: Path):
    """No Python: one clear line, and how to name one."""
    done = demo(bare)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("scripts/demo: no Python from 3.10 to 3.13 found")


def test_demo_with_an_old_python_says_so(bare: Path):
    """A Python that is too old (its version check fails) is as good as none."""
    fake_python(bare, "exit 1")
    assert "no Python from 3.10" in demo(bare).stderr


def test_demo_names_a_python_that_does_not_work(bare: Path):
    """PYTHON=… is used or refused by name, never silently replaced."""
    done = demo(bare, PYTHON="/nowhere/python")
    assert (done.returncode, "/nowhere/python" in done.stderr) == (1, True)


def test_demo_without_the_venv_module_says_what_to_install(bare: Path):
    """Debian's Python without python3-venv: the message names the package, and no half environment stays."""
    fake_python(bare, 'case "$*" in *venv*) mkdir .venv; exit 1;; --version) echo Python 3.11.2;; esac')
    done = demo(bare)
    assert done.returncode == 1
    assert "python3-venv" in done.stderr.splitlines()[-1]
    assert not (bare / ".venv").exists()


def matrix(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "scripts/matrix", *words], capture_output=True, text=True)


def test_matrix_refuses_what_it_does_not_know():
    """An unknown option ends with status 2, a Python without a row with what would name one."""
    assert matrix("--fast").returncode == 2
    done = matrix("3.9")
    assert (done.returncode, done.stdout) == (1, "")
    assert "3.9:TORCH" in done.stderr
