"""What is said to users and can be translated: the page's texts, and the report's."""

from __future__ import annotations

import ast
import json
import re
from functools import cache

from sources import javascript, modules, without_comments

from monitor.panels import drawn_by

#: What stands in t("…") and N("…").
_OF_THE_PAGE = re.compile(r'(?<![\w$.])[tN]\(\s*("(?:[^"\\]|\\.)*")')


@cache
def page_texts() -> frozenset[str]:
    """Texts that the page's scripts hand to `t` or mark with `N`."""
    found = (_OF_THE_PAGE.findall(without_comments(path)) for path in javascript())
    return frozenset(json.loads(text) for texts in found for text in texts)


@cache
def report_texts() -> frozenset[str]:
    """Every text that the report itself says: what is handed to `t`, and the titles of its charts."""
    panels = drawn_by("report")
    found = {panel.title for panel in panels} | {panel.unit for panel in panels if "/" in panel.unit}
    for module in modules().values():
        for node in ast.walk(module.tree) if module.room == "exports" else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "words.t":
                (first,) = node.args
                if isinstance(first, ast.Constant):
                    found.add(first.value)
    return frozenset(found)
