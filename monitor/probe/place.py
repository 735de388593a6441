"""Where in the user's own code something was called from, and what stands there."""

from __future__ import annotations

import linecache
import os
import re
import sys
import sysconfig
from types import FrameType

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = tuple(
    {os.path.abspath(path) + os.sep for name, path in sysconfig.get_paths().items() if "lib" in name}
    | {"<frozen", "<string>"}
)
#: Frames searched for the name of a value.
FRAMES = 12
#: Lines of one call that are read when its source is shown.
CALL_LINES = 12


def user_frame(skip: int = 1) -> FrameType | None:
    """The innermost frame outside this package, the standard library and installed packages."""
    frame: FrameType | None = sys._getframe(skip)
    while frame is not None and foreign(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def location(frame: FrameType | None) -> str | None:
    """`train.py:31`, with as much of the path as the working folder does not say already."""
    if frame is None:
        return None
    return f"{short(frame.f_code.co_filename)}:{frame.f_lineno}"


def short(path: str) -> str:
    """A path relative to the working folder where it lies below it."""
    try:
        inside = os.path.relpath(path)
    except (OSError, ValueError):
        return path
    return path if inside.startswith("..") else inside


def call_source(frame: FrameType | None, name: str) -> str | None:
    """The source of the call to `name` that runs in `frame`, from its first line to its closing bracket."""
    if frame is None:
        return None
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    for start in range(frame.f_lineno - 1, max(frame.f_lineno - CALL_LINES, 0) - 1, -1):
        if start < len(lines) and f"{name}(" in lines[start]:
            text = "".join(lines[start : start + CALL_LINES])
            return _balanced(text[text.index(f"{name}(") :])
    return None


def made_at(value: object, kind: str, frame: FrameType | None) -> tuple[str, str | None] | None:
    """Where `value` was made by a call to `kind`, for a value that was made before anybody watched.

    The frames from `frame` outwards know it by a name; the source says `name = kind(…)` somewhere.
    Returns the location and the call's source; None where no such line is found.
    """
    for _ in range(FRAMES):
        if frame is None:
            return None
        lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
        names = [name for name, item in frame.f_locals.items() if item is value]
        owner = getattr(frame.f_locals.get("self"), "__dict__", {})
        names += [f"self.{name}" for name, item in owner.items() if item is value]
        for name in names:
            made = re.compile(rf"(^|[\s,(]){re.escape(name)}\b[^=]*=\s*.*\b{kind}\(")
            for number, line in enumerate(lines, 1):
                if made.search(line):
                    text = "".join(lines[number - 1 : number - 1 + CALL_LINES])
                    return f"{short(frame.f_code.co_filename)}:{number}", _balanced(
                        text[text.index(f"{kind}(") :]
                    )
        frame = frame.f_back
    return None


def _balanced(text: str) -> str | None:
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter in ")]}" and depth == 0:
            return " ".join(text[: at + 1].split())
    return None


def foreign(filename: str) -> bool:
    """Whether a source file is ours, the standard library's or an installed package's."""
    return filename.startswith(_OURS) or filename.startswith(_LIBRARY) or "site-packages" in filename
