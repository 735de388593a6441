"""Where in the user's own code something was called from, and what stands there."""

from __future__ import annotations

import inspect
import io
import linecache
import os
import re
import sys
import sysconfig
import tokenize
from types import FrameType
from typing import Any

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
    while frame is not None and foreign(frame.f_code.co_filename) and not _from_command_line(frame):
        frame = frame.f_back
    return frame


def _from_command_line(frame: FrameType) -> bool:
    """Whether it runs code given by `python -c`. What dataclasses make is called <string> as well."""
    names = frame.f_globals
    named = frame.f_code.co_filename == "<string>" and names.get("__name__") == "__main__"
    return named and "__file__" not in names


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


def names_in(frame: FrameType) -> dict[str, Any]:
    """The variables of a frame, copied.

    Until Python 3.12 a function's frame that is asked for them makes a copy of its own and keeps it until
    the function returns: it would hold the first step's batch, outputs and loss for the whole training. So
    that copy is emptied, unless the program holds it as well: it does where it once asked for `locals()`.
    """
    theirs = frame.f_locals
    names = dict(theirs)
    function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
    # Three references: the frame's, ours, and that of the question itself.
    if function and sys.version_info < (3, 13) and sys.getrefcount(theirs) == 3:
        theirs.clear()
    return names


def call_source(frame: FrameType | None, name: str) -> str | None:
    """The source of the call to `name` that runs in `frame`, from its first line to its closing bracket."""
    if frame is None:
        return None
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    for start in range(frame.f_lineno - 1, max(frame.f_lineno - CALL_LINES, 0) - 1, -1):
        if start < len(lines) and f"{name}(" in lines[start]:
            return _call_at(lines, start, name)
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
        known = names_in(frame)
        names = [name for name, item in known.items() if item is value]
        owner = getattr(known.get("self"), "__dict__", {})
        names += [f"self.{name}" for name, item in owner.items() if item is value]
        for name in names:
            made = re.compile(rf"(^|[\s,(]){re.escape(name)}\b[^=]*=\s*.*\b{kind}\(")
            for number, line in enumerate(lines):
                if made.search(line):
                    place = f"{short(frame.f_code.co_filename)}:{number + 1}"
                    return place, _call_at(lines, number, kind)
        frame = frame.f_back
    return None


def _call_at(lines: list[str], start: int, name: str) -> str | None:
    """The call to `name` that begins in line `start` (from 0), in one line and without its comments."""
    text = "".join(lines[start : start + CALL_LINES])
    text = text[text.index(f"{name}(") :]
    words: list[str] = []
    depth, last = 0, (1, 0)
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                continue
            gap = " " if token.start[0] > last[0] else " " * min(token.start[1] - last[1], 1)
            tight = words and (words[-1] in ("(", "[", "{") or token.string in (")", "]", "}"))
            words += ["" if tight else gap, token.string]
            last = token.end
            depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
            if token.string == ")" and depth == 0:
                return "".join(words)
    except (tokenize.TokenError, SyntaxError):
        return None
    return None


def foreign(filename: str) -> bool:
    """Whether a source file is ours, the standard library's or an installed package's."""
    return filename.startswith(_OURS) or filename.startswith(_LIBRARY) or "site-packages" in filename
