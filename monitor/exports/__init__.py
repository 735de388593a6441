"""Exports: a run's store → bytes that leave the house, in the forms other tools read. Pure reads.

Every form is one file with `write(store, choice)`, a generator of bytes in pieces of bounded size, so that
a run of ten million steps needs no more memory than one of ten thousand.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import cast

from monitor.exports.choice import Choice, MissingExtraError, NoSuchStreamError
from monitor.exports.language import LANGUAGES
from monitor.store import Store

__all__ = ["FORMATS", "LANGUAGES", "Choice", "Format", "MissingExtraError", "NoSuchStreamError", "pieces"]


@dataclass(frozen=True)
class Format:
    """One form of export.

    Attributes:
        name: as in `export.NAME` and `--NAME`.
        suffix: of the file, without the leading dot.
        media_type: for HTTP.
        what: a few words for a person.
        streams: whether it holds one stream, which the choice names.
        extra: the optional extra that it needs; "" for none.
        speaks: whether it has texts, in the language that the choice names.
    """

    name: str
    suffix: str
    media_type: str
    what: str
    streams: bool = False
    extra: str = ""
    speaks: bool = False

    def missing(self) -> str | None:
        """What to install for this form to work; None where it works."""
        try:
            _module(self)
        except MissingExtraError as error:
            return str(error)
        return None


FORMATS = {
    form.name: form
    for form in (
        Format("csv", "csv", "text/csv; charset=utf-8", "one stream's rows as text", streams=True),
        Format(
            "parquet",
            "parquet",
            "application/vnd.apache.parquet",
            "one stream's rows in columns",
            streams=True,
            extra="parquet",
        ),
        Format("json", "json", "application/json", "report, facts and series"),
        Format(
            "html",
            "html",
            "text/html; charset=utf-8",
            "report on one page that needs nothing else",
            speaks=True,
        ),
        Format("perfetto", "perfetto.json", "application/json", "trace of the phases, a track a rank"),
    )
}


def pieces(form: Format, store: Store, choice: Choice) -> Iterator[bytes]:
    """A run in one form. What is wrong with the choice is said here, before the first piece.

    Raises:
        MissingExtraError: the form needs a library that is not installed.
        NoSuchStreamError: the run has no such stream.
        StoreError: the store cannot be read.
    """
    module = _module(form)
    if (form.streams or choice.stream is not None) and choice.named not in store.streams():
        raise NoSuchStreamError(
            f"the run has no stream {choice.named!r}; it has {', '.join(store.streams()) or 'none yet'}"
        )
    return cast("Callable[[Store, Choice], Iterator[bytes]]", module.write)(store, choice)


def _module(form: Format) -> ModuleType:
    """The form's file. Raises MissingExtraError where its library is not installed."""
    try:
        return importlib.import_module(f"monitor.exports.as_{form.name}")
    except ImportError as error:
        if not form.extra:
            raise
        raise MissingExtraError(form.name, form.extra, error) from None
