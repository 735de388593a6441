"""docs/findings.md explains every code to a user, and says honestly which are not checked yet."""

from __future__ import annotations

import re

import pytest
from sources import ROOT

from monitor.diagnosis.core.doctor import UNCHECKED, Detector, discover, examine
from monitor.diagnosis.core.window import Window

PAGE = (ROOT / "docs/findings.md").read_text()
TABLE = (ROOT / "docs/detectors.md").read_text()
ENTRIES = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL))

#: What every entry answers.
QUESTIONS = ("What", "Why it costs", "How to see it", "How to fix it", "How sure we are")

#: The finding codes that users may rely on.
CODES = """
data_starvation data_spikes data_degrading too_many_workers worker_respawn worker_died
pin_memory_off amp_off tf32_off amp_no_scaler amp_scale_collapse amp_skipped_steps
amp_clip_before_unscale amp_scaler_with_bf16 amp_backward_in_autocast amp_manual_cast
amp_unaligned_shapes memory_leak memory_fragmentation memory_pressure memory_headroom
empty_cache_churn small_allocations comm_bound straggler no_sync_missing find_unused_parameters
data_parallel recompiles graph_breaks launch_bound fusion_opportunity host_sync logging_stall
checkpoint_stall eval_share step_outliers throughput_regression threads_oversubscribed channels_last
noisy_neighbour gpu_underused gpu_throttled gpu_shared gpu_error nan_loss stall process_died
""".split()


def test_every_code_has_an_entry():
    """The page explains the codes of the contract, all of them and no others."""
    assert sorted(ENTRIES) == sorted(CODES)


def test_every_code_is_a_detector_s_or_said_to_be_unchecked():
    """None of the contract's codes is passed over in silence, and no detector raises one it does not know."""
    assert sorted([*(one.code for one in discover()), *UNCHECKED]) == sorted(CODES)
    assert set(UNCHECKED) <= {entry["code"] for entry in examine(Window(0.0, {})).not_checked}


@pytest.mark.parametrize("code", sorted(ENTRIES))
def test_every_entry_answers_every_question(code: str):
    """What, why it costs, how to see it, how to fix it, how sure we are: in this order."""
    assert tuple(re.findall(r"^\* \*\*([^*]+):\*\* \S", ENTRIES[code], re.MULTILINE)) == QUESTIONS


@pytest.mark.parametrize("one", discover(), ids=lambda one: one.code)
def test_the_table_tells_what_a_detector_needs(one: Detector):
    """docs/detectors.md has a row for each detector, with exactly its needs."""
    row = re.search(rf"^\| `{one.code}` \|([^|]*)\|", TABLE, re.MULTILINE)
    assert row, f"{one.code} is missing"
    assert {need for need in row[1].replace(" ", "").split(",") if need} == one.needs


@pytest.mark.parametrize("code", sorted(ENTRIES))
def test_the_page_says_what_is_not_checked(code: str):
    """A code without a detector is said to be unchecked, one with a detector is not."""
    assert ("Not checked yet" in ENTRIES[code]) == (code not in {one.code for one in discover()})
