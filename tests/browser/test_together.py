"""Several people, or one with several screens, on one run: each sees the same, and goes where it wants."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from simulated_run import PlayedHub, PlayedRun, shows_step
from waiting import until

from monitor.web.app import services_of

pytestmark = pytest.mark.browser

PHONE = {
    "viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True,
    "locale": "zh-CN", "color_scheme": "dark",
}  # fmt: skip
#: What is said of the run at first, and once its loss is no number, by language.
STARVES = {"en": "Training waits for data", "zh-CN": "训练在等待数据"}
DIVERGED = {"en": "Loss is not finite", "zh-CN": "损失不是有限值"}


def connected(hub: PlayedHub) -> tuple[int, int, int]:
    """Browsers that the hub lets in, that it sends to, and whose connections are open."""
    services = services_of(hub._app)
    peers = list(services.sockets.server.eio.sockets.values())
    return services.live.viewers, services.live.publisher.viewers, sum(not peer.closed for peer in peers)


def shows(page: Page, step: int, says: dict[str, str], findings: int) -> None:
    """The page has come to this step, this verdict and so many findings."""
    shows_step(page, step)
    language = page.evaluate("document.documentElement.lang")
    expect(page.locator(".verdict p").first).to_contain_text(says[language])
    expect(page.locator(".finding-list > .finding:visible")).to_have_count(findings)


@pytest.fixture
def screens(training: PlayedRun, open_page) -> list[Page]:
    """Two tabs of one browser, and a phone in another language and theme."""
    first = open_page()
    return [first, open_page(tab_of=first), open_page(**PHONE)]


def test_two_tabs_and_a_phone_see_the_same(hub: PlayedHub, training: PlayedRun, screens: list[Page]) -> None:
    """While the run trains on all three have its step, verdict and findings, each in its own words."""
    until(lambda: connected(hub) == (3, 3, 3))
    training.play(2)
    for page in screens:
        shows(page, training.steps, STARVES, 1)
    training.send(events=[{"kind": "nan_loss", "rank": 0, "step": training.steps}])
    training.play(1, loss=float("nan"))
    for page in screens:
        shows(page, training.steps, DIVERGED, 2)
    assert {page.evaluate("document.documentElement.lang") for page in screens} == set(STARVES)


def test_nobody_moves_the_others(training: PlayedRun, screens: list[Page]) -> None:
    """A range chosen in one tab and a finding selected in another stay where they were chosen, and last."""
    first, second, phone = screens
    first.keyboard.press("+")
    expect(first.locator(".live")).to_have_attribute("aria-pressed", "false")
    held = first.locator(".range-label").inner_text()
    second.locator(".mark-button").first.click()
    training.play(2)
    for page in screens:
        shows_step(page, training.steps)
    expect(first.locator(".range-label")).to_have_text(held)
    for page in (second, phone):
        expect(page.locator(".live")).to_have_attribute("aria-pressed", "true")
    expect(second.locator(".finding.chosen")).to_have_count(1)
    for page in (first, phone):
        expect(page.locator(".finding.chosen")).to_have_count(0)
        assert "finding" not in page.url
    assert "from=" not in second.url + phone.url


def test_one_goes_and_the_others_stay(hub: PlayedHub, training: PlayedRun, screens: list[Page]) -> None:
    """A tab that is closed is forgotten, its connection too; the others go on; the last leaves nothing."""
    until(lambda: connected(hub) == (3, 3, 3))
    for left in (2, 1, 0):
        screens.pop(0).close()
        until(lambda left=left: connected(hub) == (left, left, left))
        training.play(1)
        for page in screens:
            shows_step(page, training.steps)
    assert services_of(hub._app).live.publisher._rooms == {}
