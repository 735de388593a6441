"""What a user installs: one top-level package that works with the source tree gone."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from sources import ROOT, imports, modules, within

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

SOURCES = ("monitor", "web", "static", "templates", "pyproject.toml", "README.md", "LICENSE")
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
ATTACH = """
import monitor, torch
from torch import nn
from torch.utils.data import DataLoader
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
session = monitor.attach(model, dashboard=False)
for x in DataLoader(torch.randn(40, 4), batch_size=4):
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
session.detach()
print(monitor.__path__[0])
"""


#: Libraries that are part of a dependency's own interface, so that it cannot come without them.
BROUGHT = {
    "werkzeug": "flask",
    "jinja2": "flask",
    "engineio": "python-socketio",
    "wsproto": "simple-websocket",
    # of extras that the tests' own environment may lack
    "prometheus_client": "prometheus-client",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow-skinny",
    "wandb": "wandb",
}


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=180
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the sources that is gone afterwards."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    copy.mkdir()
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    built = run(sys.executable, *PIP, "wheel", "--no-deps", "-w", str(folder), ".", cwd=copy)
    assert built.returncode == 0, built.stderr
    shutil.rmtree(copy)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel installed. Its dependencies are those of the tests' own
    environment, by a path file, which does not carry over that environment's editable installation.
    """
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    done = run(sys.executable, *PIP, "--python", str(python), "install", "--no-deps", str(wheel), cwd=folder)
    assert done.returncode == 0, done.stderr
    dependencies = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    packages(folder).joinpath("dependencies.pth").write_text("\n".join(dependencies))
    return folder


def packages(environment: Path) -> Path:
    return next((environment / "lib").glob("python*/site-packages"))


def test_one_top_level_package(wheel: Path):
    """The wheel holds `monitor` and its own metadata, nothing else beside them."""
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"monitor"}


def test_every_source_file_is_in_the_wheel(wheel: Path):
    """Every module, script, style sheet and template arrives where the installed layout says."""
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"{m.name.replace('.', '/')}" for m in modules().values()}
    assert {w for w in wanted if not {f"{w}.py", f"{w}/__init__.py"} & names} == set()
    for folder in ("static", "templates"):
        files = [p for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        assert {f"monitor/web/{p.relative_to(ROOT)}" for p in files} <= names


def test_the_command_runs_from_there(fresh: Path, tmp_path: Path):
    """`torchvitals` and `python -m monitor` are the same, and name the commands."""
    python = run(str(fresh / "bin" / "python"), "-m", "monitor", "--help", cwd=tmp_path)
    script = run(str(fresh / "bin" / "torchvitals"), "--help", cwd=tmp_path)
    assert (python.returncode, script.returncode) == (0, 0), python.stderr + script.stderr
    assert python.stdout == script.stdout
    assert all(command in script.stdout for command in ("run", "report", "serve", "ls"))


def test_attach_works_from_there(fresh: Path, tmp_path: Path):
    """A training script imports the installed package, attaches, trains and ends."""
    (tmp_path / "train.py").write_text(ATTACH)
    done = run(str(fresh / "bin" / "python"), "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{packages(fresh)}/monitor\n"), done.stderr


def test_the_report_speaks_chinese_from_there(fresh: Path, tmp_path: Path):
    """The page's catalogue is found in the installed layout, too."""
    ask = "from monitor.exports.language import Words; print(Words('zh-CN').code)"
    done = run(str(fresh / "bin" / "python"), "-c", ask, cwd=tmp_path)
    assert done.stdout.strip() == "zh-CN", done.stderr


def test_the_three_versions_agree():
    """pyproject.toml, monitor.__version__ and the newest release in the changelog are one version."""
    import monitor

    newest = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert {project()["project"]["version"], monitor.__version__, newest[1]} == {monitor.__version__}


def test_every_import_is_a_declared_dependency():
    """Whatever library the sources import is a dependency, one of an optional extra, a part of one, an
    adapter's framework or torch.
    """
    extras = project()["project"]["optional-dependencies"]
    wanted = [
        *project()["project"]["dependencies"],
        *(d for name in extras if name != "test" for d in extras[name]),
    ]
    declared = {re.split(r"[^\w-]", d)[0].lower() for d in wanted}
    owners = packages_distributions()
    outside = [module for module in modules().values() if not within(module.name, "monitor.probe.adapters")]
    names = {name.split(".")[0] for module in outside for name in imports(module)}
    # a notebook's front end is there already where it asks a session to show itself; ROCm brings amdsmi
    guests = {"torch", "sitecustomize", "IPython", "google", "amdsmi"}
    foreign = names - sys.stdlib_module_names - {"monitor"} - guests
    packages = {n: {BROUGHT.get(n, ""), *(d.lower() for d in owners.get(n, []))} for n in foreign}
    assert {name for name, known in packages.items() if not known & declared} == set()


def test_every_dependency_has_its_reason():
    """CONTRIBUTING.md says why each dependency is there and why its lower bound is what it is."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    extras = project()["project"]["optional-dependencies"]
    ours = [d for name in extras if name not in ("test", "frameworks", "torch") for d in extras[name]]
    wanted = [*project()["project"]["dependencies"], *ours]
    bounds = [re.match(r"([\w-]+)>=([\d.]+)", line) for line in wanted]
    assert all(bounds), "every dependency has a lower bound"
    assert [b[0] for b in bounds if b and f"| `{b[1]}` | {b[2]} |" not in text] == []


def test_nothing_of_others_is_shadowed(fresh: Path):
    """`web`, `static` and `templates` are no top-level names in an installation."""
    names = {path.name for path in packages(fresh).iterdir()}
    assert {name.split("-")[0] for name in names} == {"monitor", "torchvitals", "dependencies.pth"}


def test_the_sources_parse_on_the_oldest_python():
    """No syntax newer than Python 3.10, which pyproject.toml promises."""
    for module in modules().values():
        ast.parse(module.path.read_text(), feature_version=(3, 10))
