"""Where in the user's code something was called from, and what stands there."""

from __future__ import annotations

import ast
import json
import linecache
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from monitor.probe import source_location
from monitor.probe.source_location import call_source, foreign, location, made_at, names_in, short, user_frame


def here() -> FrameType | None:
    return user_frame()


def test_the_innermost_frame_of_the_user() -> None:
    """Frames of ours, of the standard library and of installed packages are passed over."""
    found: list[str | None] = []
    json.dumps(object(), default=lambda _: found.append(location(user_frame(1))))
    line = here.__code__.co_firstlineno + 7
    assert found == [f"tests/probe/test_source_location.py:{line}"]


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        (source_location.__file__, True),
        (json.__file__, True),
        (torch.__file__, True),
        ("<frozen importlib._bootstrap>", True),
        ("<string>", True),
        ("/opt/venv/lib/python3.12/site-packages/lightning/loops.py", True),
        (__file__, False),
        ("/home/me/train.py", False),
        ("<ipython-input-3-abc>", False),
    ],
)
def test_whose_code_it_is(filename: str, expected: bool) -> None:
    """Ours, the standard library's and installed packages' is foreign; a notebook's cell is the user's."""
    assert foreign(filename) is expected


def test_short_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Below the working folder without it, elsewhere in full; also where that folder is gone."""
    monkeypatch.chdir(tmp_path)
    assert [short(f"{tmp_path}/a/train.py"), short("/elsewhere/train.py")] == [
        "a/train.py",
        "/elsewhere/train.py",
    ]
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert short("/elsewhere/train.py") == "/elsewhere/train.py"


def ran(source: str, tmp_path: Path) -> tuple[str | None, str | None]:
    """Run a script in which DataLoader notes who called it; returns location and source of the call."""
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(source))
    found: list[tuple[str | None, str | None]] = []

    def DataLoader(*args: Any, **kwargs: Any) -> None:
        frame = sys._getframe(1)
        found.append((location(frame), call_source(frame, "DataLoader")))

    linecache.checkcache(str(script))
    names = {"DataLoader": DataLoader, "torch": type("T", (), {"DataLoader": DataLoader}), "set": list}
    exec(compile(script.read_text(), str(script), "exec"), names)
    return found[0]


CALLS = {
    "in one line": ("x = DataLoader(set, batch_size=4)\n", "DataLoader(set, batch_size=4)"),
    "by a longer name": ("x = torch.DataLoader(set)\n", "DataLoader(set)"),
    "in many lines": (
        """\
        x = DataLoader(
            set,  # the data (all of it
            batch_size=4,
            collate_fn=lambda rows: ")".join(rows),
        )
        """,
        'DataLoader(set, batch_size=4, collate_fn=lambda rows: ")".join(rows),)',
    ),
    "inside another call": (
        "x = list([DataLoader(set, shuffle=(1 > 0))])\n",
        "DataLoader(set, shuffle=(1 > 0))",
    ),
    "with its arguments elsewhere": ("o = {'a': 1}\nx = DataLoader(set, **o)\n", "DataLoader(set, **o)"),
    "by another name": ("make = DataLoader\nx = make(set)\n", None),
}


@pytest.mark.parametrize("form", CALLS)
def test_the_source_of_a_call(form: str, tmp_path: Path) -> None:
    """However it is written: one line, without comments, that is Python again."""
    source, expected = CALLS[form]
    where, call = ran(source, tmp_path)
    assert call == expected
    assert where is not None
    if call is not None:
        assert isinstance(ast.parse(call, mode="eval").body, ast.Call)


def test_no_source_no_call() -> None:
    """Code that lies in no file has no text to show."""
    found: list[Any] = []
    names: dict[str, Any] = {"DataLoader": lambda: found.append(call_source(sys._getframe(1), "DataLoader"))}
    exec(compile("DataLoader()", "/nowhere/train.py", "exec"), names)
    assert (found, call_source(None, "DataLoader"), location(None)) == ([None], None, None)


class Keeper:
    """Has a value as its attribute."""

    def __init__(self) -> None:
        self.kept = bytearray(1)

    def find(self) -> tuple[str, str | None] | None:
        return made_at(self.kept, "bytearray", sys._getframe())


def test_where_a_named_value_was_made() -> None:
    """By a variable's name or an attribute's: the line that assigned it, and the call."""
    value = bytearray(2)
    found = made_at(value, "bytearray", sys._getframe())
    line = test_where_a_named_value_was_made.__code__.co_firstlineno + 2
    assert found == (f"tests/probe/test_source_location.py:{line}", "bytearray(2)")
    assert (Keeper().find() or ("", None))[1] == "bytearray(1)"
    assert made_at(object(), "bytearray", sys._getframe()) is None


def variables(keep: bool) -> dict[str, Any]:
    """A function whose variables are asked for, twice, with a big one between."""
    mine = locals() if keep else None
    names_in(sys._getframe())
    big = [0]
    found = names_in(sys._getframe())
    assert found["big"] is big
    del found["mine"]
    if mine is not None:
        assert mine["keep"] is True
    return found


@pytest.mark.parametrize("keep", [True, False])
def test_a_functions_variables(keep: bool) -> None:
    """They are all there, and a dictionary that the program got from `locals()` keeps what it had."""
    assert set(variables(keep)) == {"keep", "big"}


def test_a_modules_variables_stay() -> None:
    """At the top of a script the variables are the module itself: nothing of it is taken away."""
    names: dict[str, Any] = {"names_in": names_in, "sys": sys}
    exec("a = 1\nfound = names_in(sys._getframe())\nb = a", names)
    assert (names["found"]["a"], names["b"]) == (1, 1)


def held(make: Callable[[], Any]) -> bool:
    """Whether asking for a function's variables keeps one of them alive afterwards."""
    import weakref

    class Big:
        pass

    def function() -> bool:
        big = Big()
        gone = weakref.ref(big)
        make()
        names_in(sys._getframe())
        del big
        return gone() is not None

    return function()


def test_no_variable_is_kept_alive() -> None:
    """What a function lets go is gone, though its variables were asked for."""
    assert not held(lambda: None)
