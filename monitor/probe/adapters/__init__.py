"""One file per framework: where a step ends, what is evaluation, which modules are trained.

An adapter has `NAME`, `PACKAGES` (their import names), `MIN_VERSION`, `matches(target)` (by class names
alone, so that nothing is imported that the user has not), `modules(target)` and `install(target,
hooks)`. A new one is one file here; it is found by itself. One whose framework moves batches to the device
in a function of its own names that in `TRANSFERS`; one whose framework itself starts the other ranks has
`ranks(target)`. `ENTRIES` names what begins to train: (module, class, method); a target that nobody attached
is handed to `install` there, and to `enter(target, hooks)` where the loop's own begin was missed by then.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import nn

    from monitor.probe.framework_hooks import FrameworkHooks


class Adapter(Protocol):
    """What a module of this package has, apart from `plain`."""

    NAME: str
    PACKAGES: tuple[str, ...]
    MIN_VERSION: tuple[int, ...]

    def matches(self, target: Any) -> bool:
        """Whether this adapter knows the target."""

    def modules(self, target: Any) -> list[nn.Module]:
        """The modules behind it, as far as they are known before the training begins."""

    def install(self, target: Any, hooks: FrameworkHooks) -> None:
        """Register the framework's own callbacks, and see to it that detach takes them back."""


def find(target: Any) -> Adapter:
    """The adapter of `target`.

    Raises:
        TypeError: no adapter knows it, or the framework is too old.
    """
    known = adapters()
    for adapter in known:
        if adapter.matches(target):
            _recent(adapter, target)
            return adapter
    kind = type(target)
    raise TypeError(
        f"attach() does not know what to do with a {kind.__module__}.{kind.__qualname__}. It takes "
        f"{', '.join(adapter.NAME for adapter in known)}; an nn.Module (or several), an optimizer, or "
        "nothing at all: monitor.attach() watches whatever this process trains"
    )


def adapters() -> list[Adapter]:
    """All adapters, in the order of their names. Imports no framework."""
    found: list[Any] = []
    for entry in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{entry.name}")
        if hasattr(module, "matches"):
            found.append(module)
    return found


def transfers() -> list[tuple[str, str]]:
    """The functions by which the frameworks move a batch to its device: (module, name)."""
    return [place for adapter in adapters() for place in getattr(adapter, "TRANSFERS", ())]


def descends(target: Any, name: str, *packages: str) -> bool:
    """Whether a class called `name` of one of these packages is among the target's classes."""
    return any(
        base.__name__ == name and any(f"{base.__module__}.".startswith(f"{p}.") for p in packages)
        for base in type(target).__mro__
    )


def _recent(adapter: Adapter, target: Any) -> None:
    tops = [base.__module__.partition(".")[0] for base in type(target).__mro__]
    package = next(top for top in tops if top in adapter.PACKAGES)
    version = str(getattr(sys.modules.get(package), "__version__", ""))
    numbers = tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])
    if numbers and numbers < adapter.MIN_VERSION:
        needed = ".".join(map(str, adapter.MIN_VERSION))
        raise TypeError(
            f"{package} {version} is too old for attach(): {adapter.NAME} needs {needed} or newer. "
            f"Update it (pip install -U {package}), or use the plain form, monitor.attach(model)"
        )
