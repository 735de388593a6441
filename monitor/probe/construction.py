"""Where the user's code makes its loaders, and with which call."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from torch.utils.data import DataLoader

from monitor.probe.patches import Patches
from monitor.probe.source_location import call_source, location, made_at, user_frame

#: Where each loader was constructed: filled by a patch on `DataLoader.__init__`.
_built_at: weakref.WeakKeyDictionary[Any, tuple[str | None, str | None, str]] = weakref.WeakKeyDictionary()

#: Frames that tell one construction from another: a helper may make several loaders in one line.
ORIGIN_FRAMES = 4


def watch_construction(patches: Patches) -> None:
    """Remember where the user's code makes a DataLoader. A loader made earlier shows where it is iterated."""

    def make(original: Callable[..., None]) -> Callable[..., None]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            try:
                frame = user_frame(2)
                _built_at[self] = location(frame), call_source(frame, "DataLoader"), _origin(frame)
            except Exception:  # noqa: BLE001 - a location is nothing to fail for
                return

        return __init__

    patches.replace(DataLoader, "__init__", make)


def _origin(frame: FrameType | None) -> str:
    """A name for what makes a loader: the same each time a loop comes by, through whichever helper."""
    found = [f"{location(frame)}:{frame.f_lasti}"] if frame is not None else []
    while frame is not None and frame.f_back is not None and len(found) < ORIGIN_FRAMES:
        frame = frame.f_back
        found.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
    return " ".join(found)


def origin_of(loader: Any) -> str | None:
    """A name for the instruction that made `loader`; None where that was before anybody watched."""
    built = _built_at.get(loader)
    return built[2] if built else None


def where_made(loader: Any, frame: FrameType | None) -> tuple[str | None, str | None]:
    """Location and source of the call that made `loader`.

    Of one that was made before anybody watched, the source is searched from `frame`, which iterates it;
    where nothing is found, the location is that of the iteration.
    """
    built = _built_at.get(loader)
    return (built and built[:2]) or made_at(loader, "DataLoader", frame) or (location(frame), None)
