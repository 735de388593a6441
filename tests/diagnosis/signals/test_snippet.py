"""Snippets are made from the user's own call, and change only what is advised."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.diagnosis.signals.snippet import loader_call


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        ("DataLoader(data, batch_size=16, num_workers=0)", "DataLoader(data, batch_size=16, num_workers=4)"),
        ("DataLoader(data, batch_size=16)", "DataLoader(data, batch_size=16, num_workers=4)"),
        ("DataLoader(data, 16, True, None, None, 0)", "DataLoader(data, 16, True, None, None, 4)"),
        ("utils.data.DataLoader(data, **options)", "utils.data.DataLoader(data, **options, num_workers=4)"),
        ("DataLoader(*parts, num_workers=2)", "DataLoader(*parts, num_workers=4)"),
        (
            "DataLoader(\n    data,\n    num_workers=0,  # slow\n)",
            "DataLoader(data, num_workers=4)",
        ),
    ],
)
def test_the_users_call_is_kept(call: str, changed: str):
    """By keyword, by position, added, with spread arguments, over several lines."""
    assert loader_call({"call": call}, num_workers=4) == changed


@pytest.mark.parametrize(
    "call", [None, "", "DataLoader(data", "data", "x = DataLoader(data)", "DataLoader(" + "1, " * 200 + ")"]
)
def test_without_a_call_it_is_made_from_the_arguments(call: str | None):
    """An unknown, broken or huge call falls back to what is known of the loader."""
    assert (
        loader_call({"call": call, "batch_size": 16}, num_workers=4)
        == "DataLoader(dataset, batch_size=16, num_workers=4)"
    )


def test_several_changes_at_once():
    """Each argument is changed once."""
    changed = loader_call({"call": "DataLoader(d, num_workers=0)"}, num_workers=2, persistent_workers=True)
    assert changed == "DataLoader(d, num_workers=2, persistent_workers=True)"


@given(st.text(max_size=60))
def test_any_text_gives_code(text: str):
    """Whatever stands for the call, the snippet is one expression."""
    assert isinstance(ast.parse(loader_call({"call": text}, num_workers=4), mode="eval").body, ast.Call)
