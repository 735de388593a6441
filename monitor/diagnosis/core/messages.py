"""A text that remembers how it was made, so that a page can say the same in another language.

`message("{n} steps", n=3)` is the string "3 steps" and nothing else to whoever reads it as one. A text
without parameters needs no `message`: it is its own template. The page's catalogue is keyed by the template
as it stands in the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any

#: Template and parameters as they travel: `["{n} steps", {"n": "3"}]`. A parameter is text, formatted as in
#: English, or a pair itself.
Pair = list[Any]


class TranslatableStr(str):
    """A text with its pair.

    Attributes:
        pair: what a page needs to say it in another language.
    """

    __slots__ = ("pair",)
    pair: Pair

    def __new__(cls, text: str, pair: Pair | None = None) -> TranslatableStr:
        """`text` as it reads in English, made from `pair`."""
        made = super().__new__(cls, text)
        made.pair = [text, {}] if pair is None else pair
        return made


def message(template: str, **params: Any) -> TranslatableStr:
    """The template filled in as `str.format` does it.

    Args:
        template: one literal, with fields like `{ms:.1f}`; each name has one format throughout.
        params: a value for each field, a text that was said itself among them.

    Raises:
        KeyError: a field has no value.
    """
    rendered: dict[str, Any] = {}
    formatter = Formatter()
    for _, name, spec, conversion in formatter.parse(template):
        if name is not None:
            value = formatter.convert_field(params[name], conversion)
            rendered[name] = pair_of(value) or format(value, spec or "")
    return TranslatableStr(template.format(**params), [template, rendered])


def pair_of(text: object) -> Pair | None:
    """The pair of a text that was said; None for any other value."""
    return text.pair if isinstance(text, TranslatableStr) else None


def again(text: str, pair: object) -> str:
    """A text and its pair put together again after they travelled; the text alone where there is no pair."""
    valid = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)
    return (
        TranslatableStr(text, pair)
        if valid and isinstance(pair, list) and isinstance(pair[1], Mapping)
        else text
    )
