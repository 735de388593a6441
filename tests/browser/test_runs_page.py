"""The list of runs, in the hands of somebody who has many of them."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from contrast import faint
from finished_runs import finding, keep, steps
from playwright.sync_api import Locator, Page, expect
from simulated_run import PlayedHub, PlayedRun

from monitor import runs

pytestmark = pytest.mark.browser


def names(page: Page) -> list[str]:
    return page.locator("tbody th a").all_inner_texts()


def row_of(page: Page, run: str) -> Locator:
    return page.locator(f'tbody tr:has(a[href="#/run/{run}"])')


@pytest.fixture
def three(hub: PlayedHub) -> PlayedHub:
    """A live run and two that are over."""
    keep(hub.run_dir, "slow", steps(600, 50.0), findings=[finding()], meta={"started_unix_s": 1.7e9})
    keep(hub.run_dir, "fast", steps(600, 25.0, seed=1), meta={"started_unix_s": 1.6e9})
    PlayedRun(hub, name="live").play(5)
    return hub


@pytest.fixture
def listed(three: PlayedHub, open_page: Any) -> Page:
    return open_page("#/runs", wait="tbody tr")


def test_live_first_with_a_line_of_its_speed(listed: Page) -> None:
    """The live run comes first, then the newest; each that has one shows how its speed went."""
    assert names(listed) == ["live", "slow", "fast"]
    expect(listed.locator("tbody tr").first.locator(".spark-line path")).to_have_count(1)
    expect(listed.locator("tbody tr").first.locator(".status")).to_have_text("running")


def test_search(listed: Page) -> None:
    """`/` leads to the search; every word must be found; nothing found is said."""
    listed.keyboard.press("/")
    listed.keyboard.type("slow fin")
    expect(listed.locator("tbody tr")).to_have_count(1)
    listed.keyboard.type(" nothing")
    expect(listed.locator(".runs .nothing")).to_have_text("No run is like that.")


def test_tags_and_a_note(listed: Page) -> None:
    """What is said of a run stands in its row, and is found."""
    listed.get_by_role("button", name="Actions for slow").click()
    listed.get_by_label("Tags").fill("ablation, lr 0.1")
    listed.get_by_label("Your note").fill("before the fix\nsecond line")
    listed.get_by_role("button", name="Save").click()
    row = row_of(listed, "slow")
    expect(row.locator(".tag")).to_have_text(["ablation", "lr 0.1"])
    expect(row.locator(".note")).to_have_text("before the fix")
    listed.get_by_role("searchbox").fill("abla")
    expect(listed.locator("tbody tr")).to_have_count(1)


def test_archive(listed: Page) -> None:
    """An archived run is out of sight until archived ones are asked for."""
    listed.get_by_role("button", name="Actions for slow").click()
    listed.get_by_role("button", name="Archive").click()
    expect(listed.locator("tbody tr")).to_have_count(2)
    listed.get_by_label("archived: 1").check()
    expect(row_of(listed, "slow")).to_contain_text("archived")


def test_delete_and_undo(listed: Page, three: PlayedHub) -> None:
    """Deleted without a question, because one click brings it back."""
    listed.get_by_role("button", name="Actions for slow").click()
    listed.get_by_role("button", name="Delete").click()
    expect(listed.locator("tbody tr")).to_have_count(2)
    assert not (three.run_dir / "slow").exists()
    expect(listed.get_by_role("button", name="Undo")).to_be_focused()
    listed.keyboard.press("Enter")
    expect(listed.locator("tbody tr")).to_have_count(3)
    assert (three.run_dir / "slow").exists()


def test_undo_after_a_reload(listed: Page) -> None:
    """What was deleted stays offered for an hour, whoever looks."""
    listed.get_by_role("button", name="Actions for fast").click()
    listed.get_by_role("button", name="Delete").click()
    expect(listed.locator("tbody tr")).to_have_count(2)
    listed.reload()
    listed.get_by_text("Deleted: 1").click()
    listed.get_by_role("button", name="Bring back").click()
    expect(listed.locator("tbody tr")).to_have_count(3)


def test_a_live_run_cannot_be_deleted(listed: Page) -> None:
    """The button says why."""
    listed.get_by_role("button", name="Actions for live").click()
    button = listed.get_by_role("button", name="Delete")
    expect(button).to_be_disabled()
    expect(button).to_have_attribute("title", "A run that is not over cannot be deleted")


def test_a_refusal_is_shown(listed: Page, three: PlayedHub, complaints: list[str]) -> None:
    """The hub's reason stands in the dialog, and the run stays."""
    (three.run_dir / "slow" / "model.pt").write_text("weeks of work")
    listed.get_by_role("button", name="Actions for slow").click()
    listed.get_by_role("button", name="Delete").click()
    expect(listed.get_by_role("alert")).to_contain_text("model.pt")
    expect(listed.get_by_role("dialog")).to_be_visible()
    complaints.clear()  # the browser itself notes the 409


def test_two_selected_runs_lead_to_their_comparison(listed: Page) -> None:
    """The one selected first is the baseline, unless one of them is its project's."""
    listed.get_by_label("Select fast").check()
    expect(listed.locator(".chosen")).to_contain_text("Select another one")
    listed.get_by_label("Select slow").check()
    expect(listed.locator(".chosen")).to_have_text("Selected: 2. Baseline: fast")
    listed.get_by_role("button", name="Actions for slow").click()
    listed.get_by_role("button", name="Set as baseline").click()
    expect(row_of(listed, "slow")).to_contain_text("baseline")
    expect(listed.locator(".chosen")).to_have_text("Selected: 2. Baseline: slow")
    listed.get_by_role("link", name="Compare").click()
    expect(listed.locator(".side-of").first).to_contain_text("slow")
    assert listed.url.endswith("#/compare/slow,fast")


def test_five_hundred_runs(hub: PlayedHub, open_page: Any) -> None:
    """They come as they are scrolled to, and a search finds each of them at once."""
    one = keep(hub.run_dir, "run-000", steps(20), facts={})
    for i in range(1, 500):
        shutil.copytree(one, hub.run_dir / f"run-{i:03d}")
    page = open_page("#/runs", wait="tbody tr")
    more = page.get_by_role("button", name="Show more")
    expect(more).to_have_text("40 of 500 runs. Show more")
    more.scroll_into_view_if_needed()
    expect(page.locator("tbody tr")).to_have_count(80)
    more.dispatch_event("click")  # without coming into view, which shows more as well
    expect(page.locator("tbody tr")).to_have_count(120)
    read = runs._read.cache_info().misses
    assert page.evaluate("fetch('api/runs').then(r => r.json()).then(b => b.runs.length)") == 500
    assert (
        runs._read.cache_info().misses == read
    )  # told from memory: no store is opened for runs that are over
    page.get_by_role("searchbox").fill("run-499")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(more).to_be_hidden()
    page.get_by_role("searchbox").fill("")
    expect(page.locator("tbody tr")).to_have_count(40)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1600])
def test_readable_and_within_the_window(three: PlayedHub, open_page: Any, scheme: str, width: int) -> None:
    """Both themes have contrast, and nothing reaches beyond a phone or a wide screen."""
    page = open_page("#/runs", wait="tbody tr", color_scheme=scheme, viewport={"width": width, "height": 900})
    page.get_by_label("Select slow").check()
    assert faint(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Actions for slow").click()
    assert faint(page) == []


def test_in_chinese(three: PlayedHub, open_page: Any, complaints: list[str]) -> None:
    """The list, its search and its dialog speak Chinese, and so does a refusal of the hub's."""
    page = open_page("#/runs", wait="tbody tr", locale="zh-CN")
    expect(page.locator("h1")).to_have_text("运行列表")
    page.get_by_role("button", name="slow 的操作").click()
    expect(page.get_by_role("button", name="设为基线")).to_be_visible()
    assert page.get_by_role("dialog").evaluate("d => /[A-Za-z]{5}/.test(d.innerText)") is False
    (three.run_dir / "slow" / "thesis.tex").write_text("")
    page.get_by_role("button", name="删除").click()
    expect(page.get_by_role("dialog")).to_contain_text("slow 中有不属于 torchvitals 的文件")
    complaints.clear()  # the browser logs the refusal itself
