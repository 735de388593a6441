"""Heat and a power brake are faults; a power cap at full load is none."""

from __future__ import annotations

from typing import Any

import pytest
from devices import half, on_gpu
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.diagnosis.core.finding import Finding
from monitor.diagnosis.detectors.gpu.gpu_throttled import CLOCK_LOST, FAULTS, SHARE, detect


def found(bits: Any, clock: float = 1_980, **gpu: Any) -> Finding | None:
    return detect(on_gpu(gpu={"gpu_throttle_bits": bits, "gpu_sm_clock_mhz": clock, **gpu}))


@pytest.mark.parametrize(
    ("bits", "cause"),
    [(0x20, "heat"), (0x48, "heat"), (0x88, "power brake"), (0x8, "hardware slowdown"), (0x24, "heat")],
)
def test_each_reason_has_its_cause(bits: int, cause: str) -> None:
    """And its advice."""
    one = found(bits, clock=1_300, gpu_temperature_c=88)
    assert one is not None
    assert (one.cause, one.severity, one.gain) == (cause, "warning", None)
    assert one.evidence["clock_lost_share"] == pytest.approx(1 - 1_300 / 1_980, abs=1e-3)
    assert one.evidence["temperature_c"] == 88


@given(bits=st.integers(0, 0x1FF))
@settings(deadline=None, max_examples=50)
def test_only_the_four_reasons_are_faults(bits: int) -> None:
    """Idle, a set clock, the power cap (0x4), boost groups and displays are not."""
    assert (found(bits) is not None) == bool(bits & FAULTS)


@pytest.mark.parametrize(("factor", "severity"), [(0.95, "info"), (1.05, "warning")])
def test_mild_heat_is_information_until_the_clock_suffers(factor: float, severity: str) -> None:
    """Software holds the temperature in check; from 15 % of the clock on that costs."""
    one = found(0x20, clock=1_980 * (1 - CLOCK_LOST * factor))
    assert one is not None
    assert one.severity == severity


def test_where_clocks_are_unknown_the_hardware_s_word_counts() -> None:
    """A slowdown by the hardware is grave by itself, heat alone is not."""
    hard, soft = found(0x40, clock=float("nan")), found(0x20, clock=float("nan"))
    assert hard is not None
    assert soft is not None
    assert (hard.severity, soft.severity, "clock_lost_share" in hard.evidence) == ("warning", "info", False)


@pytest.mark.parametrize(("shown", "speaks"), [(SHARE - 0.1, False), (SHARE + 0.1, True)])
def test_a_moment_is_no_state(shown: float, speaks: bool) -> None:
    """Half of the samples must show it."""
    bits = [0x40 if number < 21 * shown else 0 for number in range(21)]
    assert (found(bits) is not None) == speaks


def test_unknown_reasons_say_nothing() -> None:
    """Where the driver does not tell them."""
    assert found(float("nan")) is None
    assert found(half(float("nan"), 0x40)) is not None, "what was told counts"
