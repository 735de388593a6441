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
_built_at: weakref.WeakKeyDictionary[Any, tuple[str | None, str | None]] = weakref.WeakKeyDictionary()


def watch_construction(patches: Patches) -> None:
    """Remember where the user's code makes a DataLoader. A loader made earlier shows where it is iterated."""

    def make(original: Callable[..., None]) -> Callable[..., None]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            try:
                frame = user_frame(2)
                _built_at[self] = location(frame), call_source(frame, "DataLoader")
            except Exception:  # noqa: BLE001 - a location is nothing to fail for
                return

        return __init__

    patches.replace(DataLoader, "__init__", make)


def where_made(loader: Any, frame: FrameType | None) -> tuple[str | None, str | None]:
    """Location and source of the call that made `loader`.

    Of one that was made before anybody watched, the source is searched from `frame`, which iterates it;
    where nothing is found, the location is that of the iteration.
    """
    return _built_at.get(loader) or made_at(loader, "DataLoader", frame) or (location(frame), None)
