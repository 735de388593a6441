"""Where the page's files lie: our own modules and styles, the template, and Plotly's bundle."""

from __future__ import annotations

import functools
import gzip
import importlib.metadata
import importlib.util
import logging
import os
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

from monitor import state

_log = logging.getLogger("monitor.web")

#: Types by ending. Named here because the system's own table may lack or distort them.
TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
}
#: gzip's own default trades time for size well: 4.8 MB become 1.4 MB in about 0.3 s, once a machine.
_LEVEL = 6
_compressing = threading.Lock()


def folder(name: str) -> Path:
    """The folder `static` or `templates`: inside this package when installed, beside it in a checkout."""
    here = Path(__file__).resolve().parent
    inside = here / name
    return inside if inside.is_dir() else here.parent / name


def static_files() -> dict[str, Path]:
    """The page's files, found by listing the folder: path below it ("charts/card.js") -> file. In order."""
    top = folder("static")
    paths = sorted(path for path in top.rglob("*") if path.suffix in TYPES and path.is_file())
    return {path.relative_to(top).as_posix(): path for path in paths}


@dataclass(frozen=True)
class Bundle:
    """Plotly's script as the `plotly` package ships it.

    Attributes:
        path: the file.
        version: the package's version.
    """

    path: Path
    version: str

    @property
    def tag(self) -> str:
        """Changes whenever the file does; good as an ETag."""
        found = self.path.stat()
        return f"{self.version}-{found.st_size:x}-{found.st_mtime_ns:x}"

    def compressed(self) -> Path | None:
        """The file gzipped, kept in the state folder from the first time on. None where that fails."""
        with _compressing:
            try:
                target = state.state_dir() / "cache" / f"plotly-{self.tag}.js.gz"
                if not target.exists():
                    self._compress(target)
            except OSError as error:
                _log.warning("Plotly goes out uncompressed: %s", error)
                return None
        return target

    def _compress(self, target: Path) -> None:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            with self.path.open("rb") as source, gzip.open(part, "wb", _LEVEL) as sink:
                shutil.copyfileobj(source, sink, 65536)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
        for old in target.parent.glob("plotly-*.js.gz"):
            if old != target:
                old.unlink(missing_ok=True)


@functools.cache
def plotly() -> Bundle | None:
    """The bundle, found without importing plotly (which takes a second); None where it is not installed."""
    spec = importlib.util.find_spec("plotly")
    if spec is None:
        return None
    for root in spec.submodule_search_locations or ():
        path = Path(root) / "package_data" / "plotly.min.js"
        if path.is_file():
            return Bundle(path, importlib.metadata.version("plotly"))
    return None
