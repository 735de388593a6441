"""The sources as data: modules, their imports, the page's scripts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Module:
    """One source file: its name as installed (`web/app.py` is `monitor.web.app`), path and syntax tree."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def room(self) -> str:
        return self.name.split(".")[1] if "." in self.name else self.name


@cache
def modules() -> dict[str, Module]:
    found = {}
    for folder, prefix in ((ROOT / "monitor", "monitor"), (ROOT / "web", "monitor.web")):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join([prefix, *parts]).removesuffix(".__init__")
            found[name] = Module(name, path, ast.parse(path.read_text(), str(path)))
    return found


def imports(module: Module, nodes: Iterator[ast.AST] | None = None) -> set[str]:
    """Dotted names that a module imports; of `from a import b` it is `a.b` where that is a module of ours."""
    found = set()
    for node in nodes or ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(module, node)
            ours = {f"{base}.{alias.name}" for alias in node.names} & set(modules())
            found.update(ours or {base})
    return found


def absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    kept = len(parts) - node.level + (module.path.name == "__init__.py")
    return ".".join([*parts[:kept], *([node.module] if node.module else [])])


def at_import_time(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Statements that run when the module is imported."""
    for node in body:
        if isinstance(node, FUNCTION):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from at_import_time(node.orelse)
            continue
        yield node
        for part in ("body", "orelse", "finalbody"):
            yield from at_import_time(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            yield from at_import_time(handler.body)


def within(name: str, places: str) -> bool:
    """Whether a module is one of the places, or inside one."""
    return any(name == place or name.startswith(place + ".") for place in places.split())


def javascript() -> list[Path]:
    return sorted((ROOT / "static").rglob("*.js"))


def without_comments(path: Path) -> str:
    return re.sub(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", "", path.read_text(), flags=re.DOTALL)
