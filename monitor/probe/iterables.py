"""Loaders that are no DataLoader: whatever iterable the user names in `attach(loader=…)`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import DataLoader

from monitor.probe.loader import LoaderHooks
from monitor.probe.patches import Patches


class Fetcher:
    """An iterator over somebody's loader; `LoaderHooks` hangs its notes on it, as on DataLoader's own."""

    def __init__(self, inner: Iterator[Any], fetch: Callable[[Any], Any]) -> None:
        self.inner = inner
        self._fetch = fetch

    def __iter__(self) -> Fetcher:
        return self

    def __next__(self) -> Any:
        return self._fetch(self)


class Watched:
    """The same loader, with its waiting time measured. Everything but iteration is the loader's own.

    Args:
        loader: any iterable.
        feeds: where it is noted.
        make: makes an iterator over it; its own `__iter__` where that was replaced.
    """

    def __init__(
        self, loader: Any, loader_hooks: LoaderHooks, make: Callable[[Any], Iterator[Any]] = iter
    ) -> None:
        self.loader = loader
        fetch = loader_hooks.fetching(lambda fetcher: next(fetcher.inner))
        self._begin = loader_hooks.opening(lambda watched: Fetcher(make(watched.loader), fetch))
        self._running: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self._begin(self)

    def __next__(self) -> Any:
        if self._running is None:
            self._running = iter(self)
        return next(self._running)

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


def watch_loader(loader: Any, loader_hooks: LoaderHooks, patches: Patches) -> Any:
    """What to iterate over instead of `loader`: itself, where its class lets us in, else a `Watched`."""
    if isinstance(loader, DataLoader):
        return loader
    watched = Watched(loader, loader_hooks)

    def make(original: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
        nonlocal watched
        watched = Watched(loader, loader_hooks, original)

        def __iter__(iterable: Any) -> Iterator[Any]:
            return iter(watched) if iterable is watched.loader else original(iterable)

        return __iter__

    with contextlib.suppress(TypeError):  # the classes of lists and generators cannot be changed
        patches.replace(type(loader), "__iter__", make)
        return loader
    return Watched(loader, loader_hooks)
