"""How large a room may grow: sizes, public names, what an import costs."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize

from sources import FUNCTION, ROOT, Module, javascript, modules

MAX_FILE_LINES = 350
MAX_FUNCTION_LINES = 40
MAX_JS_FILE_LINES = 200
#: The aim is about 55 (docs/architecture.md); a new concern may need a file, a handful of lines does not.
MAX_JS_FILES = 71
MAX_PUBLIC_NAMES = 8
MAX_IMPORT_MS = 50
#: Modules that `import monitor` may bring: of ours, and in all.
MAX_IMPORTED = (8, 70)
HEAVY = {"torch", "numpy", "flask", "flask_socketio", "socketio", "requests", "plotly", "apprise", "psutil"}
HEAVY |= {"pynvml", "sqlite3", "asyncio", "multiprocessing"}


def test_monitor_imports_nothing_heavy():
    """`import monitor` is quick, and loads no torch, web server, numpy or client library."""
    code = f"import monitor, sys; print(*({HEAVY} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("\n", "")


def test_monitor_is_imported_in_a_moment():
    """`import monitor` takes at most 50 ms (of CPU time, since the machine may be busy; best of five)."""
    code = "import time; t = time.process_time(); import monitor; print((time.process_time() - t) * 1e3)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(5)]
    assert min(float(run.stdout) for run in runs) <= MAX_IMPORT_MS


def test_monitor_imports_few_modules():
    """All of them ours or Python's own."""
    code = "import sys; had = set(sys.modules); import monitor; print(*sorted(set(sys.modules) - had))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    imported = shown.split()
    ours = [name for name in imported if name.partition(".")[0] == "monitor"]
    foreign = [
        name for name in imported if name.partition(".")[0] not in {"monitor", *sys.stdlib_module_names}
    ]
    assert "monitor.session" in ours
    assert len(ours) <= MAX_IMPORTED[0]
    assert len(imported) <= MAX_IMPORTED[1]
    assert foreign == []


def test_few_public_names():
    """`monitor` exports at most eight names, and says which."""
    import monitor

    assert len(monitor.__all__) <= MAX_PUBLIC_NAMES
    ours = {name for name, value in vars(monitor).items() if is_ours(value) and not name.startswith("_")}
    assert ours <= set(monitor.__all__)


def is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith("monitor")


def test_files_are_short():
    """A Python file has at most 350 lines."""
    sizes = {module.name: len(module.path.read_text().splitlines()) for module in modules().values()}
    assert {name: lines for name, lines in sizes.items() if lines > MAX_FILE_LINES} == {}


#: Closures over the state of one loop: a fifth cheaper than methods, in somebody else's training loop.
CLOSURES = {"monitor.probe.clock.make_clock", "monitor.probe.adapters.plain.plain"}


def test_functions_are_short():
    """A function has at most 40 lines of code, functions inside it included; but for the named closures."""
    sizes = {
        f"{module.name}.{node.name}": len(lines & set(range(node.lineno, (node.end_lineno or 0) + 1)))
        for module in modules().values()
        for lines in [code_lines(module)]
        for node in ast.walk(module.tree)
        if isinstance(node, FUNCTION)
    }
    assert {
        name: lines for name, lines in sizes.items() if lines > MAX_FUNCTION_LINES and name not in CLOSURES
    } == {}


def code_lines(module: Module) -> set[int]:
    """Numbers of the lines that hold code: no comments, blanks or docstrings."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(module.path.read_text()).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTION)) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def test_javascript_files_are_short():
    """A JavaScript file has at most 200 lines."""
    sizes = {path.name: len(path.read_text().splitlines()) for path in javascript()}
    assert {name: lines for name, lines in sizes.items() if lines > MAX_JS_FILE_LINES} == {}


def test_javascript_is_in_few_files():
    """The page is about 55 modules, each in a folder of its own concern: none lies flat."""
    files = [path.relative_to(ROOT / "static") for path in javascript()]
    assert {len(path.parts) for path in files} == {2}
    assert len(files) <= MAX_JS_FILES
