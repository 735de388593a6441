"""The table of metrics holds together, and travels as plain data."""

from __future__ import annotations

import json
import math
from typing import get_args

import pytest

from monitor import schema
from monitor.schema import BY_KEY, METRICS, PHASES, TAPE_METRICS, Metric, describe, keys_of


def test_keys_are_unique() -> None:
    """One key, one metric: the store has one column for it."""
    assert len(BY_KEY) == len(METRICS)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_each_metric_says_how_it_is_read(metric: Metric) -> None:
    """Origin, reductions and tape kind are ones that somebody knows; a key is a column's name."""
    assert metric.origin in get_args(schema.Origin)
    assert {metric.ranks, metric.buckets} <= set(get_args(schema.Combine))
    assert metric.tape in (None, *get_args(schema.Tape))
    assert metric.key.isidentifier()
    assert metric.title


@pytest.mark.parametrize("metric", [m for m in METRICS if m.unit], ids=lambda metric: metric.key)
def test_units_are_in_the_keys(metric: Metric) -> None:
    """A key tells its unit where it has a plain one."""
    endings = {"ms": "_ms", "MB": "_mb", "W": "_w", "MHz": "_mhz", "°C": "_c", "1/s": "_per_s"}
    assert endings.get(metric.unit, "") in metric.key


def test_every_phase_is_on_the_tape_first_and_in_order() -> None:
    """The clock's list of nanoseconds goes to the tape as it is."""
    assert [metric.key for metric in TAPE_METRICS[: len(PHASES)]] == [f"{phase}_ms" for phase in PHASES]
    assert {metric.tape for metric in TAPE_METRICS[: len(PHASES)]} == {"ns"}


def test_only_steps_go_over_the_tape() -> None:
    """And what is counted in nanoseconds there is told in milliseconds."""
    assert {metric.origin for metric in TAPE_METRICS} == {"step"}
    assert all(metric.unit == "ms" for metric in TAPE_METRICS if metric.tape == "ns")


def test_keys_of_an_origin() -> None:
    """In the table's order."""
    assert keys_of("gpu")[0] == "gpu_util"
    assert sum(len(keys_of(origin)) for origin in get_args(schema.Origin)) == len(METRICS)


def test_the_table_is_plain_data() -> None:
    """It is stored with a run as JSON, and makes the same metrics again."""
    told = json.loads(json.dumps(describe()))
    assert told["version"] == schema.SCHEMA_VERSION
    assert tuple(Metric(**metric) for metric in told["metrics"]) == METRICS


@pytest.mark.parametrize(
    ("key", "values", "together"),
    [
        ("step_p50_ms", [20.0, 40.0], 30.0),
        ("samples_per_s", [20.0, 40.0], 60.0),
        ("epoch", [2.0, 3.0], 3.0),
        ("loss_scale", [2.0, 3.0], 2.0),
        ("phase", [2.0, 1.0], 1.0),
        ("a_users_own", [2.0, 4.0], 3.0),
        ("rss_mb", [None, float("nan"), 5.0], 5.0),
    ],
)
def test_combining(key: str, values: list[float | None], together: float) -> None:
    """As the table declares; what is not known is left out."""
    assert schema.combine(key, values) == together


def test_combining_nothing() -> None:
    """Where nothing is known there is no number, and no zero."""
    assert math.isnan(schema.combine("rss_mb", [None, float("nan")]))
    assert math.isnan(schema.combine("rss_mb", []))
