"""axe-core finds no serious fault: on every page, in both themes, both languages, small and large."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import pytest
from played import PlayedHub, PlayedRun
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

RUN = "20261130-030000-digits-a1b2"
OLD = "20261129-030000-old-ffff"
#: The page of a run in every pair of theme, language and width; the others in both of each.
LOOKS = [
    {"color_scheme": "light", "locale": "en-GB", "viewport": {"width": 1600, "height": 1000}},
    {"color_scheme": "dark", "locale": "zh-CN", "viewport": {"width": 390, "height": 844}},
    {"color_scheme": "light", "locale": "zh-CN", "viewport": {"width": 1600, "height": 1000}},
    {"color_scheme": "dark", "locale": "en-GB", "viewport": {"width": 390, "height": 844}},
]
PAGES = {
    "run": (f"#/run/{RUN}?finding=data_starvation", ".finding.chosen"),
    "drawer": (f"#/run/{RUN}", ".finding"),
    "runs": ("#/runs", "tbody tr"),
    "compare": (f"#/compare/{OLD},{RUN}", "main section"),
}
ASK = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => [id, nodes.slice(0, 3).map(node => [node.html, node.failureSummary])])"""


@cache
def axe() -> str:
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def faults(page: Page) -> list[Any]:
    """What axe-core calls serious or critical: [[rule, [[element, why], …]], …]."""
    page.evaluate(axe())
    return page.evaluate(ASK)


@pytest.mark.parametrize(
    ("name", "look"), [(name, look) for name in PAGES for look in (LOOKS if name == "run" else LOOKS[:2])]
)
def test_no_serious_fault(hub: PlayedHub, open_page, name: str, look: dict[str, Any]) -> None:
    """Names, roles, contrast, order: what keeps people out is not there."""
    old = PlayedRun(hub, name="old", run=OLD)
    old.play(8)
    old.end(code=1, reason="RuntimeError: no", clean=False)
    PlayedRun(hub, gpus=1).play(12)
    address, there = PAGES[name]
    page = open_page(address, wait=there, **look)
    page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true; })")
    if name == "drawer":
        page.locator(".drawer-open").click()
        page.get_by_role("tab").nth(4).click()
        expect(page.get_by_role("tabpanel").locator("table")).to_be_visible()
    assert faults(page) == []


def test_axe_sees_faults(training: PlayedRun, open_page) -> None:
    """The check above can fail: a button without a name and grey on grey are reported."""
    page = open_page()
    page.evaluate(
        """() => document.querySelector("main").insertAdjacentHTML("afterbegin",
        '<button type="button"></button><p style="color:#ccc;background:#fff">hardly legible</p>')"""
    )
    assert {rule for rule, _ in faults(page)} >= {"button-name", "color-contrast"}
