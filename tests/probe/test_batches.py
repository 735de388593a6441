"""What a batch holds, by its shapes alone."""

from __future__ import annotations

from collections import OrderedDict, UserDict, namedtuple
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from monitor.probe.batches import add, count
from monitor.probe.recorder import ELEMENTS, SAMPLES, TOKENS
from monitor.schema import TAPE_METRICS

Pair = namedtuple("Pair", "image label")
NAN = float("nan")


def counted(*batches: Any) -> tuple[float | None, float | None, float | None]:
    """Samples, elements and tokens of these batches together; None where not counted."""
    values: list[Any] = [NAN] * len(TAPE_METRICS)
    for batch in batches:
        count(batch, values)
    found = (values[SAMPLES], values[ELEMENTS], values[TOKENS])
    return tuple(None if value != value else value for value in found)  # type: ignore[return-value]


X, Y = torch.zeros(4, 3), torch.zeros(4)
IDS = torch.zeros(2, 5, dtype=torch.int64)
IMAGES = [torch.zeros(3, 8, 9), torch.zeros(3, 7, 7)]
BOXES = [{"boxes": torch.zeros(5, 4)}, {"boxes": torch.zeros(1, 4)}]

BATCHES: dict[str, tuple[Any, tuple[float | None, float | None, float | None]]] = {
    "a tensor": (X, (4, 12, None)),
    "a tuple": ((X, Y), (4, 16, None)),
    "a list": ([X, Y], (4, 16, None)),
    "a namedtuple": (Pair(X, Y), (4, 16, None)),
    "a dictionary": ({"x": X, "y": Y}, (4, 16, None)),
    "an ordered one": (OrderedDict(x=X, y=Y), (4, 16, None)),
    "nested": ({"in": [X, {"more": Y}]}, (4, 16, None)),
    "text beside tensors": ((["a", "b", "c", "d"], Y), (4, 4, None)),
    "tokens": ({"input_ids": IDS, "labels": IDS}, (2, 20, 10)),
    "tokens as a tokenizer gives them": (UserDict(input_ids=IDS), (2, 10, 10)),
    "columns that were not stacked": ((tuple(IMAGES), tuple(BOXES)), (2, 3 * (72 + 49) + 24, None)),
    "samples that were not stacked": (list(zip(IMAGES, BOXES, strict=True)), (2, 3 * (72 + 49) + 24, None)),
    "a scalar": (torch.zeros(()), (None, None, None)),
    "nothing": ((), (None, None, None)),
    "numbers": ([1, 2.0, None, "text"], (None, None, None)),
}


@pytest.mark.parametrize("name", BATCHES)
def test_what_is_in_a_batch(name: str) -> None:
    """Samples, elements and tokens of the forms that loaders give."""
    batch, expected = BATCHES[name]
    assert counted(batch) == expected


def test_batches_of_one_step_add_up() -> None:
    """Accumulation inside one step: the sum."""
    assert counted((X, Y), (X, Y), {"input_ids": IDS}) == (10, 42, 10)


def test_a_value_not_measured_yet_becomes_the_first() -> None:
    """NaN and a number is that number."""
    values = [NAN, 1.5]
    add(values, 0, 2)
    add(values, 1, 2)
    assert values == [2, 3.5]


class Lazy(Mapping[str, Any]):
    """Loads its values when asked, as some batches do."""

    def __getitem__(self, key: str) -> Any:
        raise AssertionError("nobody asks for a value that may have to be loaded")

    def __iter__(self) -> Any:
        return iter(["x"])

    def __len__(self) -> int:
        return 1


def test_nothing_is_loaded_for_us() -> None:
    """A mapping of its own kind is not opened."""
    assert counted(Lazy()) == (None, None, None)


def test_values_are_never_read() -> None:
    """Tensors without values have shapes, which is all that is needed."""
    assert counted(torch.zeros(6, 2, device="meta")) == (6, 12, None)


batches = st.recursive(
    st.one_of(
        st.none(),
        st.integers(),
        st.text(max_size=3),
        st.lists(st.integers(0, 4), max_size=3).map(lambda shape: torch.zeros(shape)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
    ),
    max_leaves=12,
)


@given(batches)
def test_any_batch_is_counted_or_not(batch: Any) -> None:
    """Whatever a loader gives, counting it raises nothing and gives no negative number."""
    samples, elements, tokens = counted(batch)
    assert (samples is None) == (elements is None)
    assert tokens is None
    assert (samples or 0) >= 0
    assert (elements or 0) >= 0


def test_a_tensor_of_ones_own_class_is_not_asked() -> None:
    """Its shape is read without running code of its class: that may be slow, and may have effects."""

    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("asked")

    assert counted((torch.zeros(3, 2).as_subclass(Loud), torch.zeros(3)))[:2] == (3, 9)
