"""Device: one GPU or a part of one, and which of them a rank uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Device:
    """One GPU, or one MIG part of one.

    Attributes:
        key: its name in the stream `gpu/HOST/KEY`: "0", or "0.2" for part 2 of it.
        index: the driver's number, in order of PCI address; of the whole board.
        uuid: as the driver writes it ("GPU-…", "MIG-…").
        name: the product's.
        handle: the driver's.
        board: the handle of the whole board; `handle` itself where it is one.
        part: the driver's number of the MIG instance; None for a whole board.
    """

    key: str
    index: int
    uuid: str
    name: str
    handle: Any = None
    board: Any = None
    part: int | None = None


@dataclass(frozen=True)
class Wanted:
    """What is known of the devices that a rank uses.

    Attributes:
        uuids: of the devices on which it holds memory, as its probe says; empty where it does not say.
        visible: CUDA_VISIBLE_DEVICES; None where it is not set.
        by_address: whether CUDA counts in order of PCI address, as the driver does.
    """

    uuids: tuple[str, ...] = ()
    visible: str | None = None
    by_address: bool = False


def wanted(facts: Mapping[str, Any], environment: Mapping[str, str] | None) -> Wanted:
    """From what a rank's probe says, else from how its process was started."""
    cuda, env, started = facts.get("cuda"), facts.get("env"), environment or {}
    uuids: tuple[str, ...] = ()
    if isinstance(cuda, Mapping):
        listed = cuda.get("uuids") or [cuda.get("uuid")]
        uuids = tuple(str(uuid) for uuid in listed if uuid) if isinstance(listed, list) else ()
    seen = env.get("cuda_visible_devices") if isinstance(env, Mapping) else None
    visible = seen if isinstance(seen, str) else started.get("CUDA_VISIBLE_DEVICES")
    return Wanted(uuids, visible, started.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID")


def chosen(devices: Sequence[Device], ranks: Iterable[Wanted]) -> list[Device]:
    """The devices that the ranks use, in order; all, where it cannot be told of one rank."""
    keys: set[str] = set()
    for rank in ranks:
        found = _of_uuids(devices, rank.uuids) or visible(devices, rank)
        if found is None:
            return list(devices)
        keys.update(device.key for device in found)
    return [device for device in devices if device.key in keys]


def visible(devices: Sequence[Device], rank: Wanted) -> list[Device] | None:
    """What CUDA_VISIBLE_DEVICES leaves; None when all, or when nobody can tell.

    As CUDA does: indices or the beginnings of UUIDs, and nothing behind the first that names none. CUDA
    puts the fastest device first unless told otherwise, so on a machine with different ones its indices
    mean nothing to us. Of a board with MIG parts CUDA takes one, which cannot be told by its index.
    """
    if rank.visible is None:
        return None
    found: list[Device] = []
    counted = rank.by_address or len({device.name for device in devices if device.part is None}) <= 1
    for word in (word.strip() for word in rank.visible.split(",")):
        if word.isdigit():
            if not counted:
                return None
            named = [device for device in devices if device.index == int(word)]
        elif word.startswith("MIG-GPU-"):
            return None  # how drivers before R470 wrote it: names no UUID
        else:
            named = [device for device in devices if _begins(device.uuid, word)]
            named = named if len(named) == 1 else []
        if not named:
            break
        found += named
    return found


def _begins(uuid: str, word: str) -> bool:
    return word.startswith(("GPU-", "MIG-")) and uuid.startswith(word)


def _of_uuids(devices: Sequence[Device], uuids: Sequence[str]) -> list[Device] | None:
    """Those with these UUIDs, whatever is written before them; None unless each is found."""
    known = {bare(device.uuid): device for device in devices}
    found = [known.get(bare(uuid)) for uuid in uuids]
    return [device for device in found if device] if found and all(found) else None


def bare(uuid: str) -> str:
    """A UUID without "GPU-" or "MIG-" before it: torch writes none."""
    return uuid.removeprefix("GPU-").removeprefix("MIG-").lower()
