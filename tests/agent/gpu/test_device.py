"""Which devices a rank uses: as its probe says, else as CUDA reads its variable."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.agent.gpu.device import Device, Wanted, chosen, visible, wanted

DEVICES = [Device(str(index), index, f"GPU-{index}a-bc", "Board") for index in range(4)]
MIXED = [Device(str(index), index, f"GPU-{index}a-bc", f"Board {index}") for index in range(4)]
PARTS = [
    *DEVICES[:1],
    Device("1.0", 1, "MIG-10-x", "Part", part=3),
    Device("1.1", 1, "MIG-11-x", "Part", part=4),
]


def keys(devices: list[Device] | None) -> list[str] | None:
    return None if devices is None else [device.key for device in devices]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("2,0", ["2", "0"]),
        ("1,9,2", ["1"]),
        (" 3 , 1", ["3", "1"]),
        ("GPU-2a", ["2"]),
        ("GPU-", []),
        ("MIG-GPU-x/1/0", None),
    ],
)
def test_the_variable_is_read_as_cuda_reads_it(text: str | None, expected: list[str] | None) -> None:
    """In order, up to the first entry that names no device; an ambiguous UUID names none."""
    assert keys(visible(DEVICES, Wanted(visible=text))) == expected


def test_different_boards_are_counted_by_speed() -> None:
    """CUDA puts the fastest first, and only it knows which: unless it counts by address, nobody can tell."""
    assert visible(MIXED, Wanted(visible="1")) is None
    assert keys(visible(MIXED, Wanted(visible="1", by_address=True))) == ["1"]
    assert keys(visible(MIXED, Wanted(visible="GPU-3a"))) == ["3"]


def test_parts_of_a_board() -> None:
    """By UUID exactly one; by the board's index any of its parts."""
    assert keys(visible(PARTS, Wanted(visible="MIG-11-x"))) == ["1.1"]
    assert keys(visible(PARTS, Wanted(visible="1"))) == ["1.0", "1.1"]


@pytest.mark.parametrize("written", ["GPU-2a-bc", "2a-bc", "2A-BC"])
def test_a_uuid_is_known_however_it_is_written(written: str) -> None:
    """torch writes no prefix."""
    assert keys(chosen(DEVICES, [Wanted((written,), "0")])) == ["2"]


def test_a_uuid_that_is_not_there_leaves_the_variable() -> None:
    """A binding that makes up UUIDs must not hide the device."""
    assert keys(chosen(DEVICES, [Wanted(("beef",), "1")])) == ["1"]


def test_all_ranks_together() -> None:
    """In the order of devices, each once; all devices, where one rank's are unknown."""
    ranks = [Wanted(("3a-bc",)), Wanted(("0a-bc",)), Wanted(visible="3")]
    assert keys(chosen(DEVICES, ranks)) == ["0", "3"]
    assert chosen(DEVICES, [*ranks, Wanted()]) == DEVICES


@pytest.mark.parametrize(
    ("facts", "environment", "expected"),
    [
        ({"env": {"cuda_visible_devices": "1"}}, {"CUDA_VISIBLE_DEVICES": "0"}, Wanted(visible="1")),
        ({"env": {"cuda_visible_devices": None}}, {"CUDA_VISIBLE_DEVICES": "0"}, Wanted(visible="0")),
        ({"env": 7, "cuda": 8}, None, Wanted()),
        ({"cuda": {"uuids": ["a", "b"], "uuid": "a"}}, {}, Wanted(("a", "b"))),
        ({"cuda": {"uuid": "a"}}, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, Wanted(("a",), by_address=True)),
        ({"cuda": {"uuid": None}}, {}, Wanted()),
    ],
)
def test_what_a_rank_says_of_itself(facts: dict[str, Any], environment: Any, expected: Wanted) -> None:
    """A script may set the variable itself, which only its own process sees; UUIDs are surer than both."""
    assert wanted(facts, environment) == expected
