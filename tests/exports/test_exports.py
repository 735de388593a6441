"""The forms of export together."""

from __future__ import annotations

import subprocess
import sys

import pytest

from monitor.exports import FORMATS, Choice, MissingExtraError, NoSuchStreamError, pieces
from monitor.store import Store


@pytest.mark.parametrize("name", FORMATS)
def test_every_form_says_what_streams_there_are(store: Store, name: str):
    """A stream that the run does not have is a mistake of whoever asks, told before anything is written."""
    with pytest.raises(NoSuchStreamError, match="rank/0, rank/1"):
        pieces(FORMATS[name], store, Choice("rank/7"))


@pytest.mark.parametrize("name", FORMATS)
def test_every_form_comes_in_small_pieces(store: Store, name: str):
    """No piece grows with the run: 5,000 steps and 10 million need the same memory."""
    assert max(map(len, pieces(FORMATS[name], store, Choice()))) <= 4 * 1024 * 1024


@pytest.mark.parametrize("name", FORMATS)
def test_every_form_of_nothing_is_a_form(store: Store, name: str):
    """A range that no row lies in gives a file that can still be read, not an error."""
    assert b"".join(pieces(FORMATS[name], store, Choice(first_s=1e9)))


def test_a_missing_library_is_named_with_what_installs_it():
    """Without pyarrow the hub works, all other exports work, and Parquet says which extra to install."""
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from monitor.exports import FORMATS\n"
        "print(*(f'{form.name}={form.missing()}' for form in FORMATS.values()), sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told = dict(line.split("=", 1) for line in done.stdout.splitlines())
    missing = told.pop("parquet")
    assert missing == "parquet needs pyarrow, which is not installed: pip install 'torchvitals[parquet]'"
    assert set(told.values()) == {"None"}


def test_what_is_missing_is_an_import_error():
    """Callers that guard imports catch it."""
    assert issubclass(MissingExtraError, ImportError)
