"""axe-core finds no serious fault: in every view, in both themes, both languages, small and large."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import pytest
from crowd import handed
from playwright.sync_api import Page, expect
from simulated_run import PlayedHub, PlayedRun

pytestmark = pytest.mark.browser

RUN = "20261130-030000-digits-a1b2"
OLD, OLDER = "20261129-030000-old-ffff", "20261128-030000-older-eeee"
#: Both themes, both languages, large and small: two looks have all of them, four have every pair.
LOOKS = [
    {"color_scheme": "light", "locale": "en-GB", "viewport": {"width": 1600, "height": 1000}},
    {"color_scheme": "dark", "locale": "zh-CN", "viewport": {"width": 390, "height": 844}},
    {"color_scheme": "light", "locale": "zh-CN", "viewport": {"width": 1600, "height": 1000}},
    {"color_scheme": "dark", "locale": "en-GB", "viewport": {"width": 390, "height": 844}},
]
#: Whether the GPUs' rows are; what is not on the screen is not drawn, and what is above it still grows.
DRAWN = """() => {
  const row = document.querySelector(".gpu-row:last-child");
  row.scrollIntoView();
  return row.querySelector(".number").textContent !== "";
}"""
both = pytest.mark.parametrize("look", LOOKS[:2])
#: Over an open dialog nothing else can be reached.
DIALOG = "dialog[open]"
ASK = """async (within) => (await axe.run(within, { resultTypes: ["violations"] })).violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => [id, nodes.slice(0, 3).map(node => [node.html, node.failureSummary])])"""


@cache
def axe() -> str:
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def faults(page: Page, within: str = "html") -> list[Any]:
    """What axe-core calls serious or critical: [[rule, [[element, why], …]], …]."""
    if page.evaluate("() => window.axe === undefined"):
        page.evaluate(axe())
    return page.evaluate(ASK, within)


def unfold(page: Page) -> None:
    """Open whatever is collapsed."""
    page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true; })")


def pick_a_rank(page: Page) -> None:
    """Show one rank's own phases. What is not on the screen is not asked for."""
    page.locator(".card-ranks").scroll_into_view_if_needed()
    page.locator(".ranks-table tbody button").nth(1).click()
    expect(page.locator(".ranks-one")).to_be_visible()


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedHub]:
    """A run of four ranks on two GPUs, and two that crashed before; of one there are stacks."""
    hub = PlayedHub(tmp_path_factory.mktemp("played"))
    for name, run in (("old", OLD), ("older", OLDER)):
        gone = PlayedRun(hub, name=name, run=run)
        gone.play(8)
        gone.end(code=1, reason="RuntimeError: no", clean=False)
    live = PlayedRun(hub, world_size=4, gpus=2)
    live.play(12)
    frames = [{"file": "train.py", "line": 7, "func": "fetch"}]
    live.send(events=[{"kind": "stack", "rank": 0, "threads": [{"name": "MainThread", "frames": frames}]}])
    yield hub
    hub.stop()


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedHub]:
    """A run whose hosts tell of most ranks in averages."""
    folder = tmp_path_factory.mktemp("crowd")
    hub = PlayedHub(folder / "played")
    handed(hub, folder / "tapes", hosts=2, each=24, seconds=15, late=30).close()
    yield hub
    hub.stop()


@pytest.mark.parametrize("look", LOOKS)
def test_a_run(three: PlayedHub, open_page, look: dict[str, Any]) -> None:
    """Names, roles, contrast, order: nothing keeps people from findings, charts, ranks and GPUs."""
    page = open_page(f"#/run/{RUN}?finding=data_starvation", at=three, wait=".finding.chosen", **look)
    unfold(page)
    pick_a_rank(page)
    page.wait_for_function(DRAWN)
    assert faults(page) == []


@pytest.mark.parametrize("look", LOOKS[2:])
def test_ranks_told_in_averages(crowd: PlayedHub, open_page, look: dict[str, Any]) -> None:
    """The same of many ranks, how much they wait, and what is said of them."""
    page = open_page(at=crowd, **look)
    page.locator("[data-value=wait]").click()
    unfold(page)
    pick_a_rank(page)
    expect(page.locator(".ranks-note")).to_contain_text("46")
    expect(page.locator(".ranks-table tbody tr")).to_have_count(16)
    expect(page.locator(".ramp")).to_be_visible()
    assert faults(page) == []


@both
def test_the_drawer(three: PlayedHub, open_page, look: dict[str, Any]) -> None:
    """Each of its tabs."""
    page = open_page(f"#/run/{RUN}", at=three, wait=".finding", **look)
    page.locator(".drawer-open").click()
    for tab, there in enumerate([".tree", ".tree", "pre", "table", "table", ".downloads a"]):
        page.get_by_role("tab").nth(tab).click()
        expect(page.get_by_role("tabpanel").locator(there).first).to_be_visible()
        assert faults(page, DIALOG) == [], tab


@both
def test_the_list_and_what_can_be_done_with_a_run(three: PlayedHub, open_page, look: dict[str, Any]) -> None:
    """The list with one selected, and the dialog over it."""
    page = open_page("#/runs", at=three, wait="tbody tr", **look)
    page.locator("tbody input[type=checkbox]").first.check()
    assert faults(page) == []
    page.locator("tbody button").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert faults(page, DIALOG) == []


@both
def test_three_runs_beside_each_other(three: PlayedHub, open_page, look: dict[str, Any]) -> None:
    """Both pairs, with everything unfolded."""
    page = open_page(f"#/compare/{OLD},{OLDER},{RUN}", at=three, wait=".pair", **look)
    expect(page.locator(".pair")).to_have_count(2)
    unfold(page)
    assert faults(page) == []


def test_axe_sees_faults(training: PlayedRun, open_page) -> None:
    """The check above can fail: a button without a name and grey on grey are reported."""
    page = open_page()
    page.evaluate(
        """() => document.querySelector("main").insertAdjacentHTML("afterbegin",
        '<button type="button"></button><p style="color:#ccc;background:#fff">hardly legible</p>')"""
    )
    assert {rule for rule, _ in faults(page)} >= {"button-name", "color-contrast"}
