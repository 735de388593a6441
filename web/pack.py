"""The page's modules in one file: a hundred requests took longer than all that the page does with them.

There is no build step. The modules stay as they are written, each can be had alone under its own name, and
this puts them together when a browser asks: each becomes a function that is called once, in the order in
which they import each other. It knows the few forms of `import` and `export` that our modules have; a module
that has another one is a mistake of ours, and `PackError` names it.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from . import assets

#: Addresses of the two files, below `static/`.
SCRIPT, STYLE = "all.js", "all.css"
#: Styles come in this order: what is later wins.
STYLES = ("style.css", "charts.css", "compare.css", "runs.css", "ranks.css")
ENTRY = "main.js"

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_LATER = re.compile(r'\bimport\("\./([\w-]+\.js)"\)')
_ANY = re.compile(r"^\s*(?:import|export)\b.*", re.MULTILINE)


class PackError(ValueError):
    """A module has a form that is not known here, is not there, or imports itself in the end."""


@dataclass(frozen=True)
class Pack:
    """One file.

    Attributes:
        text: as it is sent.
        tag: changes with the text; good as an ETag, and in the address.
    """

    text: bytes
    tag: str

    @functools.cached_property
    def compressed(self) -> bytes:
        """The same, gzipped."""
        return gzip.compress(self.text, mtime=0)


def script() -> Pack:
    """All modules that `main.js` needs now or later.

    Raises:
        PackError: see there.
    """
    return _made(SCRIPT, _stamps("*.js"))


def style() -> Pack:
    """All styles. Raises PackError where one is missing."""
    return _made(STYLE, _stamps("*.css"))


def _stamps(pattern: str) -> tuple[tuple[Path, int, int], ...]:
    found = ((path, path.stat()) for path in sorted(assets.folder("static").glob(pattern)))
    return tuple((path, stat.st_mtime_ns, stat.st_size) for path, stat in found)


@functools.lru_cache(maxsize=4)
def _made(name: str, stamps: tuple[tuple[Path, int, int], ...]) -> Pack:
    sources = {path.name: path.read_text(encoding="utf-8") for path, *_ in stamps}
    text = packed(sources, ENTRY) if name == SCRIPT else styles(sources)
    raw = text.encode()
    return Pack(raw, hashlib.sha256(raw).hexdigest()[:16])


def styles(sources: dict[str, str]) -> str:
    """All styles, in their order. Raises PackError where one is missing."""
    missing = [name for name in STYLES if name not in sources]
    if missing:
        raise PackError(f"{missing[0]} is not there")
    return "\n".join(sources[name] for name in STYLES)


def packed(sources: dict[str, str], entry: str) -> str:
    """One module that does what `entry` does with all that it imports.

    What is imported later (`import("./x.js")`) is put in as well if it shares a module with what is there:
    each module is to be there once. Otherwise it stays a file of its own.

    Args:
        sources: text of each module by its name.
        entry: runs last, at the top, so that it may wait; what it exports stays exported.

    Raises:
        PackError: see there.
    """
    names = _order(sources, entry, {})
    for name in list(names):
        for later in _LATER.findall(sources[name]):
            branch = _order(sources, later, {})
            if not names.keys().isdisjoint(branch):
                names |= branch
    parts = [_function(name, sources[name], names) for name in names if name != entry]
    return "\n".join([*parts, f"// {entry}", _body(entry, sources[entry], names)])


def _order(
    sources: dict[str, str], name: str, found: dict[str, None], above: tuple[str, ...] = ()
) -> dict[str, None]:
    """A module after all that it imports, behind those that were found."""
    if name in above:
        raise PackError(" imports ".join((*above[above.index(name) :], name)))
    if name not in sources:
        raise PackError(f"{above[-1] if above else 'the page'} imports {name}, which is not there")
    for _, other in _IMPORT.findall(sources[name]):
        if other not in found:
            _order(sources, other, found, (*above, name))
    found[name] = None
    return found


def _function(name: str, source: str, names: dict[str, None]) -> str:
    exported = ", ".join(_EXPORT.findall(source))
    body = _EXPORT.sub("", _body(name, source, names))
    return f"// {name}\nconst {_called(name)} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();"


def _body(name: str, source: str, names: dict[str, None]) -> str:
    unknown = _ANY.search(_EXPORT.sub("", _IMPORT.sub("", source)))
    if unknown:
        raise PackError(f"{name}: {unknown[0].strip()}")
    body = _IMPORT.sub(lambda found: f"const {{{_renamed(found[1])}}} = {_called(found[2])};", source)
    return _LATER.sub(
        lambda found: f"Promise.resolve({_called(found[1])})" if found[1] in names else found[0], body
    )


def _renamed(imported: str) -> str:
    return re.sub(r"\b(\w+) as (\w+)\b", r"\1: \2", imported)


def _called(name: str) -> str:
    return "$" + name.removesuffix(".js").replace("-", "_")
