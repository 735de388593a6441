"""docs/findings.md explains every code to a user, made from the detectors, and says which are not checked."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from sources import ROOT

sys.path.insert(0, str(ROOT / "scripts/tools"))

import findings_docs

from monitor.diagnosis import detectors
from monitor.diagnosis.core.doctor import discover, examine, modules, unchecked
from monitor.diagnosis.core.window import Window

LANGUAGES = findings_docs.languages()
CODES = [entry.code for entry in findings_docs.entries()]

#: The finding codes that users may rely on: more may come, none of these may go.
PROMISED = """
data_starvation data_spikes data_degrading too_many_workers worker_respawn worker_died
pin_memory_off amp_off tf32_off amp_no_scaler amp_scale_collapse amp_skipped_steps
amp_clip_before_unscale amp_scaler_with_bf16 amp_backward_in_autocast amp_manual_cast
amp_unaligned_shapes memory_leak memory_fragmentation memory_pressure memory_headroom
empty_cache_churn small_allocations comm_bound straggler no_sync_missing find_unused_parameters
data_parallel recompiles graph_breaks launch_bound fusion_opportunity host_sync logging_stall
checkpoint_stall eval_share step_outliers throughput_regression threads_oversubscribed channels_last
noisy_neighbour gpu_underused gpu_throttled gpu_shared gpu_error nan_loss stall process_died
""".split()


def test_the_pages_are_made_anew():
    """In every language, from the detectors as they are."""
    stale = [path for path, text in findings_docs.pages().items() if path.read_text("utf-8") != text]
    assert stale == [], "run scripts/findings-docs"


def test_the_pages_are_made_in_english_and_chinese():
    """Whatever other languages there are."""
    assert {ROOT / "docs", ROOT / "docs/zh-CN"} <= set(LANGUAGES)


def test_no_promised_code_is_gone():
    """Each is a detector's, or said to be unchecked; and no module has another one's code."""
    assert set(PROMISED) - set(CODES) == set()
    assert len(CODES) == len(set(CODES))
    assert [module.__name__ for module in modules() if not module.__name__.endswith(f".{module.CODE}")] == []


def test_what_is_unchecked_is_said_to_be():
    """A code is a detector's or unchecked, never both; and every examination names the latter."""
    assert {one.code for one in discover()} ^ set(unchecked()) == set(CODES)
    told = {entry["code"]: entry["why"] for entry in examine(Window(0.0, {})).not_checked}
    assert {code: told.get(code) for code in unchecked()} == unchecked()


@pytest.mark.parametrize("entry", findings_docs.entries(), ids=lambda entry: entry.code)
def test_every_detector_answers_every_question(entry: findings_docs.Entry):
    """What, why it costs, how to see it, how to fix it, how sure we are: in its docstring."""
    missing = [head for head, key in findings_docs.QUESTIONS.items() if len(entry.texts.get(key, "")) < 5]
    assert missing == [], f"the docstring of {entry.code} lacks paragraphs that begin so"


@pytest.mark.parametrize("folder", sorted(set(LANGUAGES) - {ROOT / "docs"}), ids=lambda path: path.name)
def test_every_answer_is_translated_and_none_in_vain(folder: Path):
    """A new detector has its texts in `findings` of static/locale/LANGUAGE.json, one that left has none."""
    language, questions = LANGUAGES[folder], set(findings_docs.QUESTIONS.values())
    told = language.findings
    assert {
        code: sorted(questions - set(told.get(code, ())))
        for code in CODES
        if questions - set(told.get(code, ()))
    } == {}
    assert sorted(set(told) - set(CODES)) == []
    keys = questions | set(findings_docs.READS.values())
    assert {code: set(texts) - keys for code, texts in told.items() if set(texts) - keys} == {}


@pytest.mark.parametrize("folder", sorted(set(LANGUAGES) - {ROOT / "docs"}), ids=lambda path: path.name)
def test_a_translation_names_the_same_code(folder: Path):
    """Names in backquotes are code: the translation of an answer has those of its original."""
    wrong = []
    for entry in findings_docs.entries():
        for key, english in entry.texts.items():
            said = LANGUAGES[folder].text(entry, key)
            if set(re.findall(r"`[^`]+`", said)) != set(re.findall(r"`[^`]+`", english)):
                wrong.append((entry.code, key))
    assert wrong == []


def test_every_group_has_its_place():
    """A folder of detectors is listed in GROUPS, and has a title in every language."""
    folders = {path.parent.name for path in Path(detectors.__path__[0]).glob("*/__init__.py")}
    assert folders == set(detectors.GROUPS)
    page = {
        name: len(re.findall("^## ", findings_docs.findings(one), re.M)) for name, one in LANGUAGES.items()
    }
    assert set(page.values()) == {len(folders)}
    for folder, language in LANGUAGES.items():
        titles = re.findall("^## (.*)", findings_docs.findings(language), re.MULTILINE)
        assert folder.name == "docs" or [title for title in titles if title.isascii()] == []


def test_a_docstring_is_read_by_its_headings():
    """Paragraphs may run over lines; what has no heading is the module's own."""
    told = findings_docs.about("One line.\n\nWhat: a\n    b\nWhy it costs: c\n\nColumns: `x`\n")
    assert told == {"what": "a b", "cost": "c", "columns": "`x`"}
