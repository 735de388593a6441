"""What was replaced is put back, unless somebody else has replaced it since."""

from __future__ import annotations

import functools
import inspect
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from monitor.probe.patches import Patches, hide_from_compiler, unseen_by_compiler


def doubled(original: Callable[..., int]) -> Callable[..., int]:
    def twice(*args: Any, **kwargs: Any) -> int:
        return 2 * original(*args, **kwargs)

    return twice


class Base:
    def value(self, number: int = 3) -> int:
        """A number."""
        return number


class Child(Base):
    pass


def test_replaced_and_put_back() -> None:
    """A method of a class, called in between and afterwards."""
    original, patches = vars(Base)["value"], Patches()
    patches.replace(Base, "value", doubled)
    assert Base().value(4) == 8
    patches.restore()
    patches.restore()
    assert (Base().value(4), vars(Base)["value"] is original) == (4, True)


def test_an_inherited_attribute_leaves_no_trace() -> None:
    """What a class only inherits is not its own afterwards either."""
    patches = Patches()
    patches.replace(Child, "value", doubled)
    assert (Child().value(), Base().value()) == (6, 3)
    patches.restore()
    assert "value" not in vars(Child)


def test_what_is_missing_is_passed_over() -> None:
    """Another version of a library may lack it."""
    patches, place = Patches(), SimpleNamespace()
    patches.replace(place, "absent", doubled)
    patches.restore()
    assert vars(place) == {}


def test_names_texts_and_signatures_stay() -> None:
    """The replacement shows what it replaces."""
    patches, before = Patches(), inspect.signature(Base.value)
    patches.replace(Base, "value", doubled)
    shown = Base.value.__name__, Base.value.__doc__, inspect.signature(Base.value)
    patches.restore()
    assert shown == ("value", "A number.", before)


def test_a_later_patch_is_left_alone() -> None:
    """Theirs stands where it stood, and still reaches the original through ours."""
    place, patches = SimpleNamespace(f=lambda: 5), Patches()
    patches.replace(place, "f", doubled)
    ours = place.f
    place.f = lambda: ours() + 1
    theirs = place.f
    patches.restore()
    assert (place.f, place.f()) == (theirs, 11)


def test_the_last_is_undone_first() -> None:
    """Two of our own on one place: both go, whatever else was to be undone."""
    place, patches, undone = SimpleNamespace(f=lambda: 1), Patches(), []
    original = place.f
    patches.replace(place, "f", doubled)
    patches.on_undo(lambda: undone.append(place.f()))
    patches.replace(place, "f", doubled)
    assert place.f() == 4
    patches.restore()
    assert (place.f, undone) == (original, [2])


def module_level() -> int:
    return 1


def test_a_function_in_two_places_is_replaced_by_one() -> None:
    """Then it can be pickled: it is found under its own name. A place that holds another keeps that."""
    import sys

    home, second, other = sys.modules[__name__], SimpleNamespace(module_level=module_level), SimpleNamespace()
    other.module_level = len
    patches = Patches()
    patches.replace(second, "module_level", doubled, also=[home, other])
    assert second.module_level is home.module_level
    assert other.module_level is len
    assert pickle.loads(pickle.dumps(second.module_level)) is second.module_level
    patches.restore()
    assert (home.module_level(), second.module_level()) == (1, 1)


def test_what_is_no_function_is_replaced_as_well() -> None:
    """A partial, say: it has no name to take over."""
    place, patches = SimpleNamespace(f=abs), Patches()
    patches.replace(place, "f", lambda original: functools.partial(original, -3))
    assert place.f() == 3
    patches.restore()
    assert place.f is abs


def test_hiding_changes_nothing() -> None:
    """Functions that the compiler is told to pass over still do what they did."""
    hide_from_compiler("monitor.probe.patches")
    assert unseen_by_compiler(module_level)() == 1
