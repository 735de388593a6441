"""Marks: what people say of a run: tags, a note, whether it is archived. In `marks.json` beside its store."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from monitor.diagnosis.core.messages import message
from monitor.state import write_private

FILE_NAME = "marks.json"
#: Most tags of a run, and characters of a tag and of a note.
TAGS, TAG_CHARS, NOTE_CHARS = 12, 40, 2_000
#: A file longer than this is none of ours.
_MOST_BYTES = 64 * 1024

_LONG_NOTE = message("a note is a text of at most {most} characters", most=NOTE_CHARS)
_LONG_TAG = message("a tag is a text of at most {most} characters", most=TAG_CHARS)

_changing = threading.Lock()

NOTHING: Mapping[str, Any] = {"tags": [], "note": "", "archived": False}


class MarkError(ValueError):
    """What was given is no mark. The message says what is, in one line, by `message`."""


def marks(folder: Path) -> dict[str, Any]:
    """`tags`, `note` and `archived` of the run kept in `folder`. What cannot be read counts as not there."""
    try:
        path = folder / FILE_NAME
        if path.stat().st_size > _MOST_BYTES:
            return dict(NOTHING)
        return {**NOTHING, **checked(json.loads(path.read_text(encoding="utf-8")))}
    except (OSError, ValueError):
        return dict(NOTHING)


def mark(folder: Path, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Change some of a run's marks; returns all of them.

    Raises:
        MarkError: a change is none.
        OSError: the file cannot be written.
    """
    proper = checked(changes)
    with _changing:  # two changes at a time would each forget the other
        found = {**marks(folder), **proper}
        write_private(folder / FILE_NAME, found)
    return found


def checked(changes: Any) -> dict[str, Any]:
    """The marks among `changes`, each in its proper form. Raises MarkError."""
    if not isinstance(changes, Mapping) or not set(changes) <= set(NOTHING):
        raise MarkError(message("marks are an object with some of: {names}", names=", ".join(NOTHING)))
    found: dict[str, Any] = {}
    if "tags" in changes:
        found["tags"] = _tags(changes["tags"])
    if "note" in changes:
        found["note"] = _text(changes["note"], NOTE_CHARS, _LONG_NOTE)
    if "archived" in changes:
        if not isinstance(changes["archived"], bool):
            raise MarkError("archived is true or false")
        found["archived"] = changes["archived"]
    return found


def _tags(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise MarkError("tags are a list of words")
    tags = [_text(tag, TAG_CHARS, _LONG_TAG) for tag in value]
    found = list(dict.fromkeys(tag for tag in tags if tag))
    if len(found) > TAGS:
        raise MarkError(message("a run has at most {most} tags", most=TAGS))
    return found


def _text(value: Any, most: int, otherwise: str) -> str:
    if not isinstance(value, str) or len(value) > most:
        raise MarkError(otherwise)
    # lone surrogates cannot be written; of control characters only line ends say anything
    kept = "".join(c for c in value if (c.isprintable() or c == "\n") and not "\ud800" <= c <= "\udfff")
    return kept.strip()
