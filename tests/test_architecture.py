"""The rules of docs/architecture.md, held by reading the sources. Each message says what to do."""

from __future__ import annotations

import ast
import re
import sys

import pytest
from sources import FUNCTION, ROOT, at_import_time, imports, javascript, modules, within, without_comments

STANDARD = sys.stdlib_module_names - {"sqlite3"}

#: Room -> the rooms it may import. A room is a module or package directly below `monitor`.
MAY_IMPORT = {
    "schema": "",
    "panels": "schema",
    "strict_json": "",
    "events": "",
    "filesystems": "",
    "batch": "strict_json",
    "state": "filesystems",
    "options": "state",
    "tape": "strict_json schema batch",
    "probe": "schema tape",
    "agent": "strict_json schema batch tape state",
    "store": "strict_json schema batch filesystems",
    "diagnosis": "schema",
    "alerts": "diagnosis",
    "run_state": "schema panels batch store diagnosis events",
    "report": "schema store diagnosis strict_json",
    "exports": "schema panels store diagnosis report strict_json",
    "bridges": "schema store diagnosis report",
    "runs": "schema store diagnosis report state",
    "compare": "schema store diagnosis report runs",
    "pipeline": "schema events batch store diagnosis alerts run_state report runs strict_json",
    "launcher": "options state",
    "frame_tickets": "",
    "notebook": "frame_tickets",
    "process_end": "",
    # runs in the rank, as a thread, where no process may be started
    "agent_process": "_version launcher state agent batch pipeline",
    "session": "process_end schema batch options state tape probe launcher report runs store notebook "
    "agent_process",
    "_version": "",
    "monitor": "_version options session",
    "startup": "monitor probe session",
    "web": "_version schema panels batch store diagnosis pipeline report runs compare exports bridges "
    "frame_tickets state strict_json",
    "cli": "*",
    "__main__": "cli",
}

#: Library -> the one room (or the files of it) that knows it.
FOREIGN = {
    "torch": "monitor.probe",
    "pynvml": "monitor.agent.gpu.nvidia",
    "amdsmi": "monitor.agent.gpu.amd",
    "psutil": "monitor.agent.host monitor.agent.stacks",
    "socketio": "monitor.agent.uplink monitor.web.ingest monitor.web.live monitor.web.socketio_compat",
    "flask_socketio": "monitor.web.ingest monitor.web.live monitor.web.app",
    "flask": "monitor.web",
    "werkzeug": "monitor.web",
    "jinja2": "monitor.web",
    "simple_websocket": "monitor.web",
    "wsproto": "monitor.web",
    "sqlite3": "monitor.store",
    "apprise": "monitor.alerts",
    "numpy": "monitor.store monitor.diagnosis monitor.run_state monitor.pipeline monitor.report "
    "monitor.compare monitor.exports monitor.bridges",
    "pyarrow": "monitor.exports.as_parquet",
    "mlflow": "monitor.bridges.to_mlflow",
    "wandb": "monitor.bridges.to_wandb",
    "opentelemetry": "monitor.bridges.to_otlp",
    "lightning": "monitor.probe.adapters",
    "pytorch_lightning": "monitor.probe.adapters",
    "transformers": "monitor.probe.adapters",
    "accelerate": "monitor.probe.adapters",
    "ignite": "monitor.probe.adapters",
    "fastai": "monitor.probe.adapters",
    "cachetools": "monitor.pipeline",
    "prometheus_client": "monitor.web.metrics",
    "itsdangerous": "monitor.frame_tickets",
    "tensorboard": "monitor.bridges.to_tensorboard",
    "IPython": "monitor.notebook",
    "google": "monitor.notebook",
    "sitecustomize": "monitor.startup",
}

SQL = re.compile(r"\s*(SELECT\s|INSERT\s|CREATE (TABLE|INDEX)|PRAGMA\s|UPDATE \w+ SET|DELETE FROM)")


def test_every_room_has_its_place():
    """A new room is entered in MAY_IMPORT, with what it may know of the others."""
    unplaced = {module.room for module in modules().values()} - set(MAY_IMPORT)
    assert not unplaced, f"say in MAY_IMPORT what these may import: {sorted(unplaced)}"


def test_imports_run_one_way():
    """schema ← tape ← probe; tape ← agent; schema ← store, diagnosis ← pipeline ← web; none runs back."""
    wrong = []
    for module in modules().values():
        allowed = MAY_IMPORT.get(module.room, "").split()
        for name in imports(module) & set(modules()):
            room = modules()[name].room
            if room != module.room and room not in allowed and allowed != ["*"]:
                wrong.append(f"{module.name} imports {name}")
    assert not wrong, "\n".join(sorted(wrong))


def test_the_table_itself_has_no_cycle():
    """MAY_IMPORT can be put in an order in which every room comes after those it imports."""
    left = {room: set(allowed.replace("*", "web").split()) for room, allowed in MAY_IMPORT.items()}
    while left:
        free = {room for room, needs in left.items() if not needs & set(left)}
        assert free, f"these import one another: {sorted(left)}"
        left = {room: needs for room, needs in left.items() if room not in free}


def test_no_module_imports_itself_through_others():
    """No import cycle among modules at import time."""
    left = {
        name: (imports(module, at_import_time(module.tree.body)) & set(modules())) - {name}
        for name, module in modules().items()
    }
    while left:
        free = {name for name, needs in left.items() if not needs & set(left)}
        assert free, f"an import cycle runs through some of: {sorted(left)}"
        left = {name: needs for name, needs in left.items() if name not in free}


def test_the_dashboard_is_imported_by_commands_only():
    """Nothing outside cli/ and the launcher imports monitor.web: training never loads a web server."""
    others = [module for module in modules().values() if module.room not in ("web", "cli", "launcher")]
    assert [m.name for m in others if any(within(name, "monitor.web") for name in imports(m))] == []


def test_each_library_is_known_to_one_room():
    """Third-party libraries (and SQLite) are imported only where FOREIGN says."""
    wrong = [
        f"{module.name} imports {top}, which belongs to {FOREIGN.get(top, 'no room yet')}"
        for module in modules().values()
        for top in {name.split(".")[0] for name in imports(module)} - STANDARD - {"monitor"}
        if not within(module.name, FOREIGN.get(top, ""))
    ]
    assert not wrong, "\n".join(sorted(wrong))


def test_sql_is_written_in_the_store_only():
    """No other module holds an SQL statement."""
    wrong = [
        f"{module.name}:{node.lineno}"
        for module in modules().values()
        if module.room != "store"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
    ]
    assert not wrong


def test_diagnosis_touches_no_file_clock_or_process():
    """Detectors are pure functions: what they need of the world is in the window."""
    banned = {"os", "pathlib", "time", "datetime", "subprocess", "socket", "threading", "random", "tempfile"}
    wrong = [
        f"{module.name} imports {name}"
        for module in modules().values()
        if module.room == "diagnosis"
        for name in imports(module) & banned
    ]
    assert not wrong


@pytest.mark.parametrize("kind", ["diagnosis/detectors", "probe/adapters"])
def test_detectors_and_adapters_are_tested_and_documented(kind: str):
    """Each has a test file of its own name and is named in docs/."""
    docs = "\n".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    tests = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    names = [p.stem for p in sorted((ROOT / "monitor" / kind).rglob("*.py")) if not p.stem.startswith("_")]
    wrong = [f"{name} has no test_{name}.py" for name in names if f"test_{name}" not in tests]
    wrong += [f"{name} is in no file of docs/" for name in names if not re.search(rf"\b{name}\b", docs)]
    assert not wrong, "\n".join(wrong)


def test_a_detector_is_one_file_of_one_shape():
    """Every file in detectors/ has CODE (its own name), and NEEDS and detect(), or else UNCHECKED."""
    wrong = []
    for path in sorted((ROOT / "monitor/diagnosis/detectors").rglob("[!_]*.py")):
        tree = ast.parse(path.read_text())
        names = {node.name for node in tree.body if isinstance(node, FUNCTION)}
        values = {
            ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target): node.value
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
        }
        code = values.get("CODE")
        whole = "detect" in names and "NEEDS" in values
        if whole == ("UNCHECKED" in values):
            wrong.append(f"{path.name} lacks detect() or NEEDS, or has UNCHECKED besides")
        if not (isinstance(code, ast.Constant) and code.value == path.stem):
            wrong.append(f"{path.name}: CODE is not the file's name")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("what", "pattern", "owner"),
    [
        ("the charting library", r"\bPlotly\b", "charts/chart.js"),
        ("WebSockets", r"\bnew WebSocket\b", "net/socket.js"),
        ("Engine.IO packets", r"\bEIO=|socket\.io/", "net/socket.js"),
    ],
)
def test_javascript_keeps_one_concern_a_file(what: str, pattern: str, owner: str):
    """Only charts/chart.js knows Plotly, only net/socket.js knows Socket.IO and Engine.IO."""
    wrong = [
        p.name
        for p in javascript()
        if p != ROOT / "static" / owner and re.search(pattern, without_comments(p))
    ]
    assert not wrong, f"{what} belongs to {owner}"


def test_nothing_is_fetched_from_elsewhere():
    """The page names no other host, so it works with no internet. An XML namespace is no address."""
    pages = [*javascript(), *(ROOT / "static").rglob("*.css"), *(ROOT / "templates").rglob("*.html")]
    address = re.compile(r"[\"'(=\s]((?:https?:)?//[\w-]+\.[\w.-]+[^\s\"')]*)")
    found = {match for page in pages for match in address.findall(without_comments(page))}
    assert found <= {"http://www.w3.org/2000/svg"}
