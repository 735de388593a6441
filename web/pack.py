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
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

from . import assets

#: Addresses of the two files, below `static/`.
SCRIPT, STYLE = "all.js", "all.css"
#: Styles come in this order: what is later wins.
STYLES = ("app/style.css", "charts/charts.css", "compare/compare.css", "runs/runs.css", "ranks/ranks.css")
ENTRY = "app/main.js"

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.{1,2}/[\w./-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_LATER = re.compile(r'\bimport\("(\.{1,2}/[\w./-]+\.js)"\)')
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
    """All modules that `app/main.js` needs now or later.

    Raises:
        PackError: see there.
    """
    return _made(SCRIPT, _stamps(".js"))


def style() -> Pack:
    """All styles. Raises PackError where one is missing."""
    return _made(STYLE, _stamps(".css"))


def _stamps(suffix: str) -> tuple[tuple[str, Path, int, int], ...]:
    found = ((name, path) for name, path in assets.static_files().items() if path.suffix == suffix)
    stats = ((name, path, path.stat()) for name, path in found)
    return tuple((name, path, stat.st_mtime_ns, stat.st_size) for name, path, stat in stats)


@functools.lru_cache(maxsize=4)
def _made(name: str, stamps: tuple[tuple[str, Path, int, int], ...]) -> Pack:
    sources = {name: path.read_text(encoding="utf-8") for name, path, *_ in stamps}
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
        sources: text of each module by its name, which is its path below `static/`.
        entry: runs last, at the top, so that it may wait; what it exports stays exported.

    Raises:
        PackError: see there.
    """
    names = _order(sources, entry, {})
    for name in list(names):
        for later in _LATER.findall(sources[name]):
            branch = _order(sources, _resolved(name, later), {})
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
        needed = _resolved(name, other)
        if needed not in found:
            _order(sources, needed, found, (*above, name))
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

    def at_once(found: re.Match[str]) -> str:
        return f"const {{{_renamed(found[1])}}} = {_called(_resolved(name, found[2]))};"

    def later(found: re.Match[str]) -> str:
        other = _resolved(name, found[1])
        # what stays a file of its own is asked for from the packed file, which lies at the top
        return f"Promise.resolve({_called(other)})" if other in names else f'import("./{other}")'

    return _LATER.sub(later, _IMPORT.sub(at_once, source))


def _resolved(name: str, other: str) -> str:
    """The module that `name` calls `other`: "charts/card.js" calls "app/dom.js" "../app/dom.js"."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), other))


def _renamed(imported: str) -> str:
    return re.sub(r"\b(\w+) as (\w+)\b", r"\1: \2", imported)


def _called(name: str) -> str:
    return "$" + re.sub(r"\W", "_", name.removesuffix(".js"))
