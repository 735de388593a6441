"""Texts that are hard to read on their ground, as the browser has painted them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

_SCRIPT = Path(__file__).with_suffix(".js").read_text()


def faint(page: Page) -> list[Any]:
    """Texts on the page whose contrast is below WCAG 2 AA."""
    return list(page.evaluate(_SCRIPT))
