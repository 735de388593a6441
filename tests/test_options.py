"""Options: keywords before the environment before defaults; nonsense is refused in one line."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.options import DEFAULT_SAMPLE_S, Options, resolve, switched_off


def test_defaults() -> None:
    """With nothing said: a dashboard, a sample a second, a stall that adapts."""
    found = resolve({}, {})
    assert (found.name, found.hub, found.dashboard, found.sample_s) == (None, None, True, DEFAULT_SAMPLE_S)
    assert (found.stall_after_s, found.alerts, dict(found.config)) == (None, (), {})


#: Option, as a keyword, as its environment variable says it, and what comes of either.
FORMS: list[tuple[str, Any, str, Any]] = [
    ("name", "night", "night", "night"),
    ("run_dir", "/tmp/runs", "/tmp/runs", Path("/tmp/runs")),
    ("hub", "http://hub:7007", "http://hub:7007", "http://hub:7007"),
    ("dashboard", False, "off", False),
    ("sample_s", 0.5, "0.5", 0.5),
    ("stall_after_s", 30, "30", 30.0),
    ("on_stall", "abort", "Abort", "abort"),
    ("on_stall_grace_s", 0, "0", 0.0),
    ("alerts", ["ntfy://a", "mailto://b"], "ntfy://a, mailto://b", ("ntfy://a", "mailto://b")),
    ("config", {"lr": 0.1}, '{"lr": 0.1}', {"lr": 0.1}),
]


def test_every_option_is_tried_here() -> None:
    """A new option gets a line above."""
    assert {form[0] for form in FORMS} == {field.name for field in dataclasses.fields(Options)}


@pytest.mark.parametrize(("name", "keyword", "text", "expected"), FORMS)
def test_each_option_by_keyword_and_by_environment(name: str, keyword: Any, text: str, expected: Any) -> None:
    """MONITOR_<OPTION> says the same as the keyword."""
    assert getattr(resolve({name: keyword}, {}), name) == expected
    assert getattr(resolve({}, {f"MONITOR_{name.upper()}": text}), name) == expected


def test_nothing_is_done_about_stalls_unless_asked_for() -> None:
    """Off by default and by any word for no; what is neither is refused, and so is a grace below zero."""
    assert resolve({}, {}).on_stall is resolve({"on_stall": "off"}, {}).on_stall is None
    for wrong in ({"on_stall": "kill"}, {"on_stall_grace_s": -1}):
        with pytest.raises(ValueError, match="on_stall"):
            resolve(wrong, {})


def test_a_keyword_comes_before_the_environment() -> None:
    """Also one that says no."""
    env = {"MONITOR_NAME": "environment", "MONITOR_DASHBOARD": "on"}
    found = resolve({"name": "keyword", "dashboard": False}, env)
    assert (found.name, found.dashboard) == ("keyword", False)


def test_an_empty_variable_says_nothing() -> None:
    """`MONITOR_SAMPLE_S= python train.py` is no option."""
    names = [field.name for field in dataclasses.fields(Options)]
    assert resolve({}, {f"MONITOR_{name.upper()}": "" for name in names}) == resolve({}, {})


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no", "false", " off "])
def test_words_that_switch_off(word: str) -> None:
    """For the whole monitor, and for the dashboard alone."""
    assert switched_off({"MONITOR": word})
    assert not resolve({}, {"MONITOR_DASHBOARD": word}).dashboard


@pytest.mark.parametrize("word", ["", "on", "1", "yes", "anything"])
def test_words_that_do_not(word: str) -> None:
    """Everything else leaves it on."""
    assert not switched_off({"MONITOR": word})
    assert resolve({}, {"MONITOR_DASHBOARD": word}).dashboard


def test_an_unknown_option_names_the_known_ones() -> None:
    """A TypeError, as for any function."""
    with pytest.raises(TypeError, match="no option colour; it has: name, run_dir"):
        resolve({"colour": "red"}, {})


@pytest.mark.parametrize("name", ["sample_s", "stall_after_s"])
@pytest.mark.parametrize("value", ["often", 0, -1, float("nan"), float("inf"), [], "1e999"])
def test_seconds_that_make_no_sense(name: str, value: Any) -> None:
    """One line that names option and value, by keyword and by environment."""
    with pytest.raises(ValueError, match=f"{name} is a number of seconds, at least") as refused:
        resolve({name: value}, {})
    assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match=name):
        resolve({}, {f"MONITOR_{name.upper()}": str(value)})


@pytest.mark.parametrize("value", ["{", "[1]", "7", "null", "lr=0.1"])
def test_a_config_that_is_no_object(value: str) -> None:
    """MONITOR_CONFIG is a JSON object, and the keyword a dict."""
    with pytest.raises(ValueError, match="config is a JSON object"):
        resolve({}, {"MONITOR_CONFIG": value})
    with pytest.raises(ValueError, match="config is a JSON object"):
        resolve({"config": [1, 2]}, {})


def test_a_config_of_any_values_is_plain() -> None:
    """`attach(config=vars(args))`: paths, types and devices are stored by their text."""
    found = resolve({"config": {"data": Path("/data"), "depth": 3, "kind": int, 1: (2,)}}, {}).config
    assert found == {"data": "/data", "depth": 3, "kind": "<class 'int'>", "1": [2]}


@given(st.floats(0.5, 1e6))
def test_seconds_come_through(value: float) -> None:
    """As they were said, by number and by text."""
    assert resolve({"stall_after_s": value}, {}).stall_after_s == value
    assert resolve({}, {"MONITOR_STALL_AFTER_S": repr(value)}).stall_after_s == value


def test_a_run_folder_below_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`~` is the user's folder, and a relative path lies below the working folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert resolve({"run_dir": "~/runs"}, {}).run_dir == tmp_path / "runs"
    assert resolve({"run_dir": "runs"}, {}).run_dir == tmp_path / "runs"
