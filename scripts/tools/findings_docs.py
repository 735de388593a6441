"""The pages about findings, made from the detectors: see scripts/findings-docs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from monitor.diagnosis import detectors
from monitor.diagnosis.core.doctor import modules

ROOT = Path(__file__).resolve().parents[2]
#: Heading in a docstring -> key of its translation.
QUESTIONS = {
    "What": "what", "Why it costs": "cost", "How to see it": "see", "How to fix it": "fix",
    "How sure we are": "sure",
}  # fmt: skip
READS = {"Columns": "columns", "Facts": "facts", "Events": "events"}
COLUMNS = ("detector", "needs", "columns and samples", "facts", "events")
BEGIN = "<!-- made by scripts/findings-docs from monitor/diagnosis/detectors -->"
END = "<!-- end of what is made -->"
_HEADED = re.compile(rf"^({'|'.join([*QUESTIONS, *READS])}):[ \n](.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """One code of the pages.

    Attributes:
        group: folder of its module.
        needs: of the detector; None where there is none.
        unchecked: why nothing can tell it; "" where there is a detector.
        texts: key of QUESTIONS and READS -> Markdown.
    """

    code: str
    group: str
    needs: tuple[str, ...] | None
    unchecked: str
    texts: Mapping[str, str]


@dataclass(frozen=True)
class Language:
    """A language's texts; English has none, since it is written in the detectors.

    Attributes:
        messages, headings: English -> text.
        findings: code -> key -> Markdown.
    """

    messages: Mapping[str, str] = field(default_factory=dict)
    headings: Mapping[str, str] = field(default_factory=dict)
    findings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def heading(self, text: str) -> str:
        """As it is where nobody translated it."""
        return self.headings.get(text, text)

    def text(self, entry: Entry, key: str) -> str:
        """Of an entry; "" where the detector says nothing."""
        return self.findings.get(entry.code, {}).get(key) or entry.texts.get(key, "")


def about(docstring: str) -> dict[str, str]:
    """The texts of a detector's docstring: key of QUESTIONS and READS -> one line of Markdown."""
    keys = QUESTIONS | READS
    return {keys[head]: " ".join(text.split()) for head, text in _HEADED.findall(docstring)}


def entries() -> list[Entry]:
    """All codes, in order."""
    return [_entry(module) for module in modules()]


def _entry(module: ModuleType) -> Entry:
    unchecked = getattr(module, "UNCHECKED", "")
    needs = None if unchecked else tuple(sorted(module.NEEDS))
    return Entry(module.CODE, module.__name__.split(".")[-2], needs, unchecked, about(module.__doc__ or ""))


def findings(language: Language) -> str:
    """The sections of docs/findings.md: a group each, in it a code each."""
    lines = []
    for group in detectors.GROUPS:
        title = (import_module(f"{detectors.__name__}.{group}").__doc__ or "").strip().rstrip(".")
        lines += [f"## {language.heading(title)}", ""]
        for entry in entries():
            if entry.group == group:
                lines += [f"### `{entry.code}`", *_answers(entry, language), ""]
    return "\n".join(lines).rstrip()


def _answers(entry: Entry, language: Language) -> Iterator[str]:
    colon = ":" if not language.headings else "\N{FULLWIDTH COLON}"
    for heading, key in QUESTIONS.items():
        yield f"* **{language.heading(heading)}{colon}** {language.text(entry, key)}"
    if entry.unchecked:
        why = language.messages.get(entry.unchecked, entry.unchecked)
        yield f"* **{language.heading('Not checked')}{colon}** {why}"


def table(language: Language) -> str:
    """The table of docs/detectors.md: a row each."""
    rows = [[language.heading(column) for column in COLUMNS], ["---"] * len(COLUMNS)]
    for entry in entries():
        if entry.needs is not None:
            reads = [language.text(entry, key) for key in READS.values()]
            rows.append([f"`{entry.code}`", ", ".join(entry.needs), *reads])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


#: Page -> what is made for it.
MADE = {"findings.md": findings, "detectors.md": table}


def languages() -> dict[Path, Language]:
    """Folder of the pages -> language: English, and each of static/locale that has pages."""
    found = {ROOT / "docs": Language()}
    for path in sorted((ROOT / "static/locale").glob("*.json")):
        texts: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if (ROOT / "docs" / path.stem).is_dir():
            found[ROOT / "docs" / path.stem] = Language(
                texts["messages"], texts["headings"], texts["findings"]
            )
    return found


def pages() -> dict[Path, str]:
    """Page -> its text as it should be: what is written by hand, with what is made between the marks."""
    told = {}
    for folder, language in languages().items():
        for name, make in MADE.items():
            head, _, rest = (folder / name).read_text("utf-8").partition(BEGIN)
            tail = rest.partition(END)[2]
            told[folder / name] = f"{head}{BEGIN}\n\n{make(language)}\n\n{END}{tail}"
    return told


def main(words: list[str]) -> int:
    """Write the pages, or with `--check` name those that are stale."""
    stale = {path: text for path, text in pages().items() if path.read_text("utf-8") != text}
    for path, text in stale.items():
        if "--check" not in words:
            path.write_text(text, "utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    return int("--check" in words and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
