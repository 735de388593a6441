"""Language: the report's texts in English or another language, from the catalogues that the page has.

The English text is the key, and a text that nobody translated stays English. A catalogue is one file,
`static/locale/CODE.json`, and another file there is another language; `static/locale/i18n.js` does the same
in a browser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

#: `{name}`; the hub's templates may carry Python's format with it.
_FIELD = re.compile(r"\{(\w+)(?:![rs])?(?::[^{}]*)?\}")


def _folder() -> Path:
    """The page's catalogues: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "web" / "static" / "locale"
    return inside if inside.is_dir() else package.parent / "static" / "locale"


#: Codes of the languages there are, as the page and HTML name them.
LANGUAGES = ("en", *sorted(path.stem for path in _folder().glob("*.json")))


def names() -> dict[str, str]:
    """Code of each language but English → what it calls itself."""
    return {code: _catalogue(code)["name"] for code in LANGUAGES[1:]}


class Words:
    """Texts in one language.

    Attributes:
        code: of the language, one of `LANGUAGES`; "en" where the catalogue is not installed.
    """

    def __init__(self, code: str = LANGUAGES[0]) -> None:
        self._messages: Mapping[str, str] = {} if code == LANGUAGES[0] else _messages(code)
        self.code = code if self._messages else LANGUAGES[0]

    def t(self, template: str, /, **params: str) -> str:
        """The text of `template`, each `{name}` replaced by the parameter of that name."""
        text = self._messages.get(template, template)
        return _FIELD.sub(lambda field: params.get(field[1], field[0]), text)

    def word(self, text: object) -> str:
        """A single word (a phase, a status); as it came where nobody translated it."""
        return self._messages.get(str(text), str(text))

    def translate(self, text: object, pair: Any = None) -> str:
        """A text of the hub's.

        Args:
            text: how it reads in English.
            pair: `[template, params]` where it has parameters; a parameter may be such a pair itself.
        """
        if not (_is_pair(pair) and pair[0] in self._messages):
            return self.word(text)
        return self.t(pair[0], **{name: self._parameter(value) for name, value in pair[1].items()})

    def _parameter(self, value: Any) -> str:
        """A pair that nobody translated is filled in as it is."""
        if not _is_pair(value):
            return self.word(value)
        return self.t(value[0], **{name: self._parameter(part) for name, part in value[1].items()})


def _is_pair(value: Any) -> bool:
    """Whether it is `[template, params]`; a damaged store may hold anything."""
    is_pair = isinstance(value, list) and len(value) == 2
    return is_pair and isinstance(value[0], str) and isinstance(value[1], dict)


def _messages(code: str) -> Mapping[str, str]:
    """English text → text in this language; empty where its catalogue is not installed."""
    messages: Mapping[str, str] = _catalogue(code)["messages"]
    return messages


@cache
def _catalogue(code: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((_folder() / f"{code}.json").read_text("utf-8"))
    except FileNotFoundError:
        return {"name": code, "messages": {}}
    return found
