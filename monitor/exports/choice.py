"""What of a run is to be exported, and what can be wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

#: The stream that is meant when nobody says: the steps of the first rank.
STREAM = "rank/0"


@dataclass(frozen=True)
class Choice:
    """A part of a run.

    Attributes:
        stream: one stream's name; None for the one that is usual (`STREAM`), or for all of them.
        first_s, last_s: range in seconds since the run began, both included; None: from the first row, to
            the last.
        language: of the texts, for a form that has any; see `language.LANGUAGES`.
    """

    stream: str | None = None
    first_s: float | None = None
    last_s: float | None = None
    language: str = "en"

    @property
    def named(self) -> str:
        """The one stream, for a form that holds one."""
        return self.stream or STREAM

    def holds(self, t_s: float) -> bool:
        """Whether a moment lies in the range."""
        return (self.first_s is None or t_s >= self.first_s) and (self.last_s is None or t_s <= self.last_s)


class NoSuchStreamError(LookupError):
    """The run has no stream of that name. The message names those it has."""


class MissingExtraError(ImportError):
    """An optional extra is not installed. The message says what to install, in one line."""

    def __init__(self, what: str, extra: str, why: ImportError) -> None:
        library = (why.name or str(why)).split(".")[0]
        super().__init__(
            f"{what} needs {library}, which is not installed: pip install 'torchvitals[{extra}]'"
        )
