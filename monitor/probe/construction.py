"""Where the user's code makes its loaders, and with which call."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from torch.utils.data import DataLoader

from monitor.probe.patches import Patches
from monitor.probe.source_location import call_source, location, made_at, user_frame

#: Where each loader was constructed, and as which: filled by a patch on `DataLoader.__init__`.
_built_at: weakref.WeakKeyDictionary[Any, tuple[str | None, str | None, str, int]] = (
    weakref.WeakKeyDictionary()
)
_constructed = [0]

#: Frames that tell one construction from another: a helper may make several loaders in one line.
ORIGIN_FRAMES = 4


def watch_construction(patches: Patches) -> None:
    """Remember where the user's code makes a DataLoader. A loader made earlier shows where it is iterated."""

    def make(original: Callable[..., None]) -> Callable[..., None]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            try:
                frame = user_frame(2)
                _constructed[0] += 1
                made_by = location(frame), call_source(frame, "DataLoader")
                _built_at[self] = (*made_by, _origin(frame), _constructed[0])
            except Exception:  # noqa: BLE001 - a location is nothing to fail for
                return

        return __init__

    patches.replace(DataLoader, "__init__", make)


def _origin(frame: FrameType | None) -> str:
    """A name for what makes a loader: the same each time a loop comes by, through whichever helper."""
    found = [f"{location(frame)}:{frame.f_lasti}"] if frame is not None else []
    while frame is not None and frame.f_back is not None and len(found) < ORIGIN_FRAMES:
        frame = frame.f_back
        found.append(f"{frame.f_code.co_filename}:{frame.f_lasti}")
    return " ".join(found)


class Origins:
    """Which loaders stand for one another: some loops make a new one each epoch, by the same instruction.

    Those that one instruction made before the first of them was used (`{part: DataLoader(…) for part in
    ("train", "val")}`) are different ones, and so are all that it makes later.
    """

    def __init__(self) -> None:
        self._first_used: dict[str, int] = {}
        self._several: set[str] = set()

    def name(self, loader: Any, number: int) -> str:
        """A name that loaders share which stand for one another. `number` is this one's own."""
        built = _built_at.get(loader)
        if built is None:
            return str(number)  # it was made before anybody watched
        origin, constructed = built[2:]
        if origin not in self._first_used:
            self._first_used[origin] = _constructed[0]
            return origin
        if constructed <= self._first_used[origin]:
            self._several.add(origin)
        return f"{origin} {number}" if origin in self._several else origin


def where_made(loader: Any, frame: FrameType | None) -> tuple[str | None, str | None]:
    """Location and source of the call that made `loader`.

    Of one that was made before anybody watched, the source is searched from `frame`, which iterates it;
    where nothing is found, the location is that of the iteration.
    """
    built = _built_at.get(loader)
    return (built and built[:2]) or made_at(loader, "DataLoader", frame) or (location(frame), None)
