"""Ranks beside one another: where there are several, worst first, by pointer and by keys, at any number."""

from __future__ import annotations

import re
from array import array
from pathlib import Path

import pytest
from crowd import handed
from playwright.sync_api import Page, expect
from simulated_run import PlayedHub, PlayedRun

from monitor.batch import Block
from monitor.schema import PHASES

pytestmark = pytest.mark.browser

#: A step of a rank that waits for another one, and of the one that is waited for, in ms.
WAITS = {"data": 1.0, "forward": 15.0, "backward": 14.0, "optimizer": 4.0, "comm": 45.0, "other": 1.0}
LATE = {"data": 45.0, "forward": 15.0, "backward": 14.0, "optimizer": 4.0, "comm": 1.0, "other": 1.0}
CARD = ".card-ranks"
#: A canvas that nobody has drawn on is 150 px high.
DRAWN = """() => {
  const canvas = document.querySelector('.heat-canvas');
  return canvas !== null && canvas.clientHeight > 0 && canvas.height !== 150;
}"""
#: Colours of the cells of two rows at a share of the width. A copy is read, since reading slows the original.
PIXELS = """([rows, share]) => {
  const canvas = document.querySelector('.heat-canvas');
  const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height});
  const context = copy.getContext('2d', {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  const x = 52 + share * (canvas.width - 62);
  const colour = (row) => context.getImageData(x, 6 + (row + 0.5) * 20, 1, 1).data;
  return rows.map((row) => [...colour(row)].slice(0, 3));
}"""


class Crew(PlayedRun):
    """A run of several ranks, of which some are late and some take no more steps.

    Args:
        hub: who gets its batches.
        ranks: how many.
        late: ranks that come last to every exchange.
    """

    def __init__(self, hub: PlayedHub, ranks: int = 4, late: tuple[int, ...] = (2,), **more: object) -> None:
        self.late, self.silent = late, set[int]()
        super().__init__(hub, world_size=ranks, phases=WAITS, **more)  # type: ignore[arg-type]

    def _steps(self, rank: int, loss: float | None) -> Block:
        self.phases = LATE if rank in self.late else WAITS
        block = super()._steps(rank, loss)
        if rank not in self.silent:
            return block
        nothing = {key: array("f") for key in (*(f"{phase}_ms" for phase in PHASES), "step_ms")}
        return Block(f"rank/{rank}", self.steps, array("d"), nothing)

    def send(self, blocks=(), events=()) -> None:
        super().send([block for block in blocks if len(block)], events)

    def have_batches(self, *lengths: int) -> None:
        """Each rank's training loader has so many."""
        for rank, length in enumerate(lengths):
            facts = {
                "ddp": {"join": False},
                "loader/1": {"role": "train", "length": length, "location": "t.py:3"},
            }
            self.send(
                events=[{"kind": "fact", "rank": rank, "name": n, "value": v} for n, v in facts.items()]
            )

    def stops(self, rank: int, phase: str = "data") -> None:
        """The rank takes no more steps; its agent says so."""
        self.silent.add(rank)
        about = {"rank": rank, "phase": phase, "since_s": self.t_s, "step": self.steps}
        stall = {
            "kind": "stall",
            "usual_step_ms": 80.0,
            "threshold_s": 5.0,
            "cause": "waits for its batch",
            **about,
        }
        self.send(events=[{"kind": "live", **about}, stall])

    def dies(self, rank: int) -> None:
        """The rank is killed."""
        self.silent.add(rank)
        how = {"code": None, "signal": 9, "reason": "killed by SIGKILL", "clean": False}
        last = {"last_step": self.steps - 1, "last_phase": "forward"}
        self.send(events=[{"kind": "rank_end", "rank": rank, **how, **last}])


@pytest.fixture
def crew(hub: PlayedHub) -> Crew:
    """Four ranks, the third of them late, twelve seconds old."""
    run = Crew(hub)
    run.play(12)
    return run


@pytest.fixture
def ranks(open_page, crew: Crew) -> Page:
    """The page with its heat map drawn."""
    page = open_page()
    drawn(page)
    return page


def drawn(page: Page) -> None:
    page.locator(CARD).scroll_into_view_if_needed()
    page.wait_for_function(DRAWN)


def cell(page: Page, row: int, share: float) -> tuple[float, float]:
    """Where a cell lies on the page."""
    box = page.locator(".heat-canvas").bounding_box()
    assert box is not None
    return box["x"] + 52 + share * (box["width"] - 62), box["y"] + 6 + (row + 0.5) * 20


def point(page: Page, row: int, share: float) -> None:
    page.mouse.move(*cell(page, row, share))


def test_one_rank_alone(page: Page) -> None:
    """A run of one rank has nothing to compare: no such card, and nothing is asked about ranks."""
    expect(page.locator(CARD)).to_be_hidden()
    asked = page.evaluate("() => performance.getEntriesByType('resource').map(e => e.name)")
    assert [url for url in asked if re.search("/(ranks|band)[?]", url)] == []


def test_several_ranks(ranks: Page) -> None:
    """Several ranks: their number, the span of their step times, and a map of them with its legend."""
    expect(ranks.locator(f"{CARD} h3 .count")).to_have_text("4")
    expect(ranks.locator('[data-panel="ranks_step"] .legend')).to_contain_text(
        re.compile(r"middle.*slowest.*fastest")
    )
    expect(ranks.locator(".ranks-legend li")).to_have_text(["data", "comm"])
    expect(ranks.locator(".ranks-odd")).to_contain_text("rank")
    assert ranks.locator(".heat-canvas").bounding_box()["height"] == 6 + 4 * 20 + 24


def test_cells_have_the_ribbons_colours(ranks: Page) -> None:
    """The late rank stands first in the colour of fetching, the others wait in that of communication."""
    orange, purple = ranks.evaluate(PIXELS, [[0, 2], 0.2])
    assert orange[0] > 200 > orange[1] > orange[2]
    assert purple[0] > purple[2] > purple[1]


def test_waiting_instead_of_phases(ranks: Page) -> None:
    """Waiting is shown on a scale of its own: the one that hardly waits is pale, and the legend says why."""
    ranks.get_by_role("button", name="Waiting").click()
    expect(ranks.locator(".ranks-legend")).to_contain_text("is the one the others wait for")
    expect(ranks.locator(".ranks-legend")).to_contain_text(re.compile(r"4[4-6]\.\d.ms or more"))
    ranks.wait_for_function(
        f"() => {{ const [pale, deep] = ({PIXELS})([[0, 2], 0.2]).map(c => c[0] + c[1] + c[2]);"
        " return pale > deep + 150; }"
    )


def test_pointing_tells_rank_time_and_cell(ranks: Page) -> None:
    """Beside the pointer stand rank, time, and what it did there; the crosshair runs through all charts."""
    point(ranks, 0, 0.2)
    tip = ranks.locator(".tip")
    expect(tip).to_contain_text(
        re.compile(r"rank 2 on box.*mostly.*data.*step.*[78][0-9].*of it waiting", re.DOTALL)
    )
    expect(ranks.locator(".grid")).to_have_class(re.compile("crossed"))
    expect(ranks.locator(".heat .cross-tag")).to_have_text(re.compile("s$"))
    ranks.mouse.move(5, 5)
    expect(tip).to_be_hidden()


def test_click_shows_one_ranks_own_phases(ranks: Page) -> None:
    """A click on a row shows that rank's own phases; another one, or Close, takes them away."""
    ranks.mouse.click(*cell(ranks, 0, 0.2))
    expect(ranks.locator(".ranks-one")).to_contain_text(re.compile("Rank 2 on box.*a step"))
    expect(ranks.locator(".card-rank .legend")).to_contain_text(re.compile(r"data\s*4\d"))
    ranks.wait_for_function("() => document.querySelector('.card-rank .canvas').data?.length >= 5")
    ranks.get_by_role("button", name="Close").click()
    expect(ranks.locator(".ranks-one")).to_be_hidden()


def test_keys_do_what_the_pointer_does(ranks: Page) -> None:
    """Arrows move from cell to cell, Enter picks, all of it said to screen readers; the time range stays."""
    ranks.locator(".heat-field").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft"):
        ranks.keyboard.press(key)
    said = ranks.locator(".heat [aria-live]")
    expect(said).to_have_text(re.compile(r"rank [013] on box, .*mostly comm"))
    ranks.keyboard.press("Enter")
    expect(ranks.locator(".ranks-one")).to_be_visible()
    expect(ranks.locator(".live")).to_have_attribute("aria-pressed", "true")
    ranks.keyboard.press("Escape")
    expect(ranks.locator(".tip")).to_be_hidden()


def test_drag_narrows_all_charts(ranks: Page) -> None:
    """A stretch of time drawn on the map holds for every chart, and for the question to the hub."""
    with ranks.expect_request(lambda request: "/ranks?from=" in request.url and "from=0&" not in request.url):
        ranks.mouse.move(*cell(ranks, 1, 0.2))
        ranks.mouse.down()
        ranks.mouse.move(*cell(ranks, 2, 0.4))
        ranks.mouse.up()
    expect(ranks.locator(".live")).to_have_attribute("aria-pressed", "false")
    expect(ranks.locator(".range-label")).to_contain_text("–")


def test_a_range_narrows_band_and_numbers(open_page, hub: PlayedHub) -> None:
    """In a stretch of time in which all were alike, band and table tell of that stretch only."""
    run = Crew(hub, late=())
    run.play(20)
    run.late = (2,)
    run.play(20)
    page = open_page(f"#/run/{run.run}?from=2&to=18")
    drawn(page)
    page.locator(".ranks-table summary").click()
    times = page.locator(".ranks-table tbody td:nth-child(6)")
    expect(times).to_have_text([re.compile(r"^4[3-7]\.")] * 4)
    expect(page.locator("[data-panel=ranks_step] .legend")).to_contain_text(re.compile(r"slowest\s*8[0-3]"))
    page.locator(".live").click()
    expect(times).to_contain_text([re.compile(r"^2\d\.|^1\d\.|^[0-9]\.")] + [re.compile(r"^4")] * 3)


def test_dead_and_stopped_are_seen_at_once(ranks: Page, crew: Crew) -> None:
    """A rank that dies and one that stops come first, each with an icon, a word and what is known."""
    crew.dies(3)
    crew.stops(1)
    crew.play(8)
    odd = ranks.locator(".ranks-odd button")
    expect(odd.nth(0)).to_contain_text("rank 3 died")
    expect(odd.nth(0)).to_contain_text("killed by SIGKILL")
    expect(odd.nth(1)).to_contain_text(re.compile("rank 1 stopped.*in data for"))
    assert odd.locator("svg").count() >= 2
    odd.nth(1).click()
    expect(ranks.locator(".ranks-one strong")).to_have_text("Rank 1 on box")
    expect(odd.nth(1)).to_have_attribute("aria-pressed", "true")


def test_table_for_those_who_see_no_canvas(ranks: Page) -> None:
    """The same in a table, worst first, whose numbers are buttons; it is built only when it is opened."""
    table = ranks.locator(".ranks-table")
    assert table.locator("tbody tr").count() == 0
    table.locator("summary").click()
    expect(table.locator("tbody tr")).to_have_count(4)
    expect(table.locator("tbody tr").first).to_contain_text(re.compile(r"2.*box.*8\d.*ms"))
    table.get_by_role("button", name="Show rank 2").click()
    expect(ranks.locator(".ranks-one strong")).to_have_text("Rank 2 on box")


def test_many_ranks(hub: PlayedHub, open_page) -> None:
    """Of many ranks the worst sixteen; all of them on demand, asked for with no more cells than are drawn."""
    Crew(hub, ranks=40, late=(33,)).play(8)
    page = open_page()
    drawn(page)
    assert page.locator(".heat-canvas").bounding_box()["height"] == 6 + 16 * 15 + 24
    with page.expect_request(re.compile("limit=1024")) as asked:
        page.get_by_role("button", name="All 40").click()
    assert "cells=phase&" in asked.value.url + "&"
    page.wait_for_function("() => document.querySelector('.heat-canvas').clientHeight === 6 + 40 * 8 + 24")
    page.get_by_role("button", name="By number").click()
    expect(page.get_by_role("button", name="By number")).to_have_attribute("aria-pressed", "true")


def test_ranks_told_in_averages(hub: PlayedHub, open_page, tmp_path: Path) -> None:
    """Where a host has too many ranks to tell of each step the map has no holes: they worked."""
    handed(hub, tmp_path / "tapes", hosts=2, each=24, seconds=20, late=30).close()
    page = open_page()
    drawn(page)
    expect(page.locator(".ranks-note")).to_have_text("46 told as averages over about a second")
    expect(page.locator(".ranks-odd button").first).to_contain_text("rank 30 late")
    shares = [0.02 * at for at in range(2, 30)]  # of the half minute that is shown
    cells = {tuple(page.evaluate(PIXELS, [[5], share])[0]) for share in shares}
    assert len(cells) == 1


def test_before_the_first_step(hub: PlayedHub, open_page) -> None:
    """Ranks that have taken no step yet: rows without cells, words, and no error."""
    Crew(hub, ranks=2)
    page = open_page(wait=".tile")
    drawn(page)
    page.get_by_role("button", name="Waiting").click()
    expect(page.locator(".ranks-legend")).to_have_text("No waiting was measured here.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1600])
def test_fits_any_screen(open_page, crew: Crew, width: int, scheme: str) -> None:
    """On a phone and on a wide screen, light and dark, the map fills its card and nothing runs off."""
    crew.have_batches(50, 51, 51, 51)
    page = open_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    drawn(page)
    expect(page.locator(".ranks-note")).to_contain_text("ranks have 50 to 51 batches: the run hangs")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    card, canvas = (page.locator(where).bounding_box() for where in (CARD, ".heat-canvas"))
    assert canvas["width"] == pytest.approx(card["width"] - 18, abs=1)


def test_in_chinese(open_page, crew: Crew) -> None:
    """The same in Chinese."""
    page = open_page(locale="zh-CN")
    drawn(page)
    expect(page.locator("#ranks-title")).to_contain_text("各 rank")
    expect(page.get_by_role("button", name="最差的在前")).to_be_visible()
