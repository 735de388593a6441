"""A sentence that remembers how it was made."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from monitor.diagnosis.core.messages import again, message, pair_of


def test_reads_as_the_string_it_is():
    """It equals, hashes and prints as what `str.format` makes of it."""
    text = message("of {whole:.1f} ms, {share:.0%} are {what!r}", whole=12.345, share=0.314, what="x")
    assert text == "of 12.3 ms, 31% are 'x'"
    assert {text: 1}["of 12.3 ms, 31% are 'x'"] == 1
    assert json.dumps(text) == "\"of 12.3 ms, 31% are 'x'\""


def test_remembers_template_and_formatted_parameters():
    """The pair holds the template as written, and each parameter as English shows it."""
    assert pair_of(message("{n} of {ms:.1f} ms", n=3, ms=2.04)) == [
        "{n} of {ms:.1f} ms",
        {"n": "3", "ms": "2.0"},
    ]


def test_a_parameter_may_be_said_itself():
    """Then its own pair travels, so that it is translated too."""
    inner = message("slower {phase}", phase="forward")
    assert message("{title}: it is", title=inner).pair[1] == {
        "title": ["slower {phase}", {"phase": "forward"}]
    }


def test_braces_in_parameters_are_text():
    """What a parameter holds is never taken for a field."""
    text = message("{line}", line="f'{x}' % {}")
    assert text == "f'{x}' % {}"
    assert text.pair == ["{line}", {"line": "f'{x}' % {}"}]


def test_a_missing_parameter_is_noticed():
    """A mistake in a detector is an error there, not half a sentence on the page."""
    with pytest.raises(KeyError):
        message("{n} steps", m=1)


def test_a_plain_text_has_no_pair():
    """It is its own template."""
    assert pair_of("Training waits for data") is None
    assert pair_of(None) is None


def test_comes_together_again():
    """Text and pair, stored apart, make the same sentence; whatever is no pair leaves the text alone."""
    text = message("{n} steps", n=3)
    back = again(str(text), json.loads(json.dumps(pair_of(text))))
    assert (back, pair_of(back)) == (text, pair_of(text))
    for damaged in (None, [], ["x"], [1, {}], ["x", 3], "xy", {"x": 1}):
        assert pair_of(again("text", damaged)) is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda text: pickle.loads(pickle.dumps(text))])
def test_survives_copying(copied):
    """A copy remembers as well."""
    text = message("{n} steps", n=3)
    assert pair_of(copied(text)) == pair_of(text)
