"""Which code trains."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.probe.script import MOST_CHARACTERS, MOST_VARIABLES, script_facts, variables


def test_an_edit_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest is the file's: the same for the same text wherever it lies, another after an edit."""
    script = tmp_path / "train.py"
    script.write_text("lr = 0.1\n")
    (tmp_path / "elsewhere.py").write_text("lr = 0.1\n")
    monkeypatch.setattr("sys.argv", [str(script), "--lr", "0.1"])
    first = script_facts()
    monkeypatch.setattr("sys.argv", [str(tmp_path / "elsewhere.py")])
    copy = script_facts()
    script.write_text("lr = 0.2\n")
    monkeypatch.setattr("sys.argv", [str(script)])
    edited = script_facts()
    assert first is not None
    assert copy is not None
    assert edited is not None
    assert first["name"] == "train.py"
    assert first["digest"] == copy["digest"] != edited["digest"]


@pytest.mark.parametrize("argv", [[], [""], ["-c"], ["/no/such/file.py"], ["/"], ["nul\0byte"]])
def test_no_script(argv: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook, an interactive session, a file that is gone: nothing is said, nothing raised."""
    monkeypatch.setattr("sys.argv", argv)
    assert script_facts() is None


def test_no_script_of_that_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A huge file is not read: attach must return at once."""
    huge = tmp_path / "packed.pyz"
    with huge.open("wb") as file:
        file.truncate(64_000_000)
    monkeypatch.setattr("sys.argv", [str(huge)])
    assert script_facts() is None


def test_variables_that_tune() -> None:
    """What changes how fast the libraries run is told."""
    env = {"OMP_NUM_THREADS": "2", "NCCL_ALGO": "Ring", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    assert variables(env) == env


@pytest.mark.parametrize(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "HF_TOKEN", "PATH", "HOME", "MY_OMP_X", "omp_num_threads",
        "TORCH_HOME", "TORCHELASTIC_RUN_ID", "NCCL_COMM_ID", "NVIDIA_API_KEY", "CUDA_TOKEN", "MASTER_PORT",
    ],
)  # fmt: skip
def test_no_other_variable(name: str) -> None:
    """Nothing that could be a secret, and nothing that only names the job."""
    assert variables({name: "x"}) == {}


def test_variables_are_bounded() -> None:
    """However many there are, and however long."""
    many = variables({f"NCCL_X{i:04d}": "y" * 10_000 for i in range(1000)})
    assert len(many) == MOST_VARIABLES
    assert {len(value) for value in many.values()} == {MOST_CHARACTERS}
