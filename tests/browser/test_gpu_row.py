"""A row for every GPU: what it does, against what it could, and nothing at all where there is none."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from simulated_run import HEALTHY, PlayedHub, PlayedRun

pytestmark = pytest.mark.browser

BUSY = {
    "gpu_util": 97.0, "gpu_tensor_activity": 41.0, "gpu_sm_activity": 70.0, "gpu_memory_used_mb": 61_200.0,
    "gpu_memory_total_mb": 81_559.0, "gpu_power_w": 640.0, "gpu_power_limit_w": 700.0,
    "gpu_temperature_c": 66.0, "gpu_sm_clock_mhz": 1_980.0, "gpu_sm_clock_max_mhz": 1_980.0,
    "gpu_throttle_bits": 0.0,
}  # fmt: skip
HOT = {**BUSY, "gpu_sm_clock_mhz": 1_110.0, "gpu_throttle_bits": 64.0, "gpu_ecc_uncorrected": 2.0}
CAPPED = {**BUSY, "gpu_throttle_bits": 4.0}
MEMORY = {"cuda_allocated_mb": 40_300.0, "cuda_reserved_mb": 58_100.0, "cuda_split_mb": 9_200.0}
#: How many different colours the small charts of a row show: 1 is an empty one.
COLOURS = """row => [...row.querySelectorAll('.spark')].map((canvas) => {
  const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height});
  const context = copy.getContext('2d', {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  const data = new Uint32Array(context.getImageData(0, 0, copy.width, copy.height).data.buffer);
  return new Set(data).size;
})"""


class Devices(PlayedRun):
    """A run on GPUs, each with a row of its own kind a second; rank R's tensors lie on device R.

    Args:
        hub: who gets its batches.
        rows: of each device, what its samples say.
        memory: what torch tells of its memory, or nothing.
    """

    def __init__(self, hub: PlayedHub, rows: list[dict[str, float]], memory: dict[str, float] | None) -> None:
        self.rows, self.memory = rows, memory
        super().__init__(hub, gpus=len(rows), phases=HEALTHY)
        gpus = [{"index": i, "uuid": f"GPU-{i}", "name": "NVIDIA H100 80GB HBM3"} for i in range(len(rows))]
        cuda = {"kind": "fact", "rank": 0, "name": "cuda", "value": {"device": 0, "uuid": "GPU-0"}}
        self.send(events=[{"kind": "agent", "pid": 1, "version": "0", "host_facts": {"gpus": gpus}}, cuda])

    def _rows(self) -> dict[str, dict[str, float]]:
        told: dict[str, dict[str, float]] = {**super()._rows()}
        told |= {f"gpu/box/{index}": row for index, row in enumerate(self.rows)}
        return told | ({"cuda/0": self.memory} if self.memory else {})


def gpus(page: Page, index: int) -> Any:
    return page.locator(f'[data-gpu="gpu/box/{index}"]')


def cell(page: Page, index: int, name: str) -> Any:
    return gpus(page, index).locator(f'[data-cell="{name}"]')


@pytest.fixture
def devices(hub: PlayedHub, open_page) -> Page:
    """The page of a run on three devices: one busy, one too hot, one at its power limit."""
    Devices(hub, [BUSY, HOT, CAPPED], MEMORY).play(8)
    page = open_page()
    page.locator(".gpus").scroll_into_view_if_needed()
    return page


def test_no_gpu_no_row(page: Page) -> None:
    """Without a GPU there is no such card: no value is invented."""
    expect(page.locator(".gpus")).to_be_hidden()
    expect(page.locator(".gpu-row")).to_have_count(0)


def test_every_device_says_what_it_does(devices: Page) -> None:
    """Each is named, and tells utilisation with what the Tensor Cores do in it, memory by its parts, power
    against its limit, clock and temperature."""
    expect(devices.locator(".gpus h3 .count")).to_have_text("3")
    expect(gpus(devices, 0).locator("h4")).to_have_text("GPU 0NVIDIA H100 80GB HBM3")
    expect(cell(devices, 0, "util")).to_contain_text(re.compile(r"97.*tensor 41 %.*SM 70 %"))
    expect(cell(devices, 0, "memory")).to_contain_text(re.compile(r"61\.2.*of 81\.6.*GB"))
    expect(cell(devices, 0, "memory")).to_contain_text("allocated 40.3 · split 9.20 · reserved 58.1")
    expect(cell(devices, 0, "power")).to_contain_text(re.compile(r"640.*of 700.*W"))
    expect(cell(devices, 0, "clock")).to_contain_text(re.compile(r"1.980.*of 1.980.MHz"))
    expect(cell(devices, 0, "temperature")).to_contain_text(re.compile(r"66.*°C"))


def test_only_what_costs_speed_is_an_alarm(devices: Page) -> None:
    """Throttling is said with an icon and its reason; a power limit at full load is said without."""
    hot, capped = (cell(devices, index, "clock").locator(".said") for index in (1, 2))
    expect(hot).to_have_text("too hot (hardware)")
    expect(hot.locator("svg")).to_be_visible()
    expect(capped).to_have_text("at its power limit")
    expect(capped.locator("svg")).to_be_hidden()
    expect(cell(devices, 0, "clock").locator(".said")).to_have_text("")


def test_memory_errors_stand_beside_the_device(devices: Page) -> None:
    """Memory errors that were not corrected are noted at their device, and only there."""
    expect(gpus(devices, 1).locator(".gpu-notes")).to_contain_text("memory errors, not corrected: 2")
    expect(gpus(devices, 0).locator(".gpu-notes li")).to_have_count(0)


def test_small_charts_are_drawn(devices: Page) -> None:
    """Every cell has a small chart, without one more of the large library."""
    row = gpus(devices, 1)
    devices.wait_for_function(
        f"() => ({COLOURS})(document.querySelector('[data-gpu=\"gpu/box/1\"]')).every(n => n > 2)"
    )
    assert len(row.evaluate(COLOURS)) == 5
    assert row.locator(".main-svg").count() == 0


def test_not_measured_is_no_zero(hub: PlayedHub, open_page) -> None:
    """A device whose driver tells little, and torch nothing: dashes, and no legend for what is not there."""
    Devices(hub, [{"gpu_memory_used_mb": 500.0}], None).play(4)
    page = open_page()
    page.locator(".gpus").scroll_into_view_if_needed()
    for name in ("util", "power", "clock", "temperature"):
        expect(cell(page, 0, name).locator(".number")).to_have_text("–")
        expect(cell(page, 0, name).locator(".number")).to_have_attribute("title", "not measured")
    expect(cell(page, 0, "memory")).to_contain_text("500")
    expect(page.locator('.gpus [data-colour="split"]')).to_be_hidden()


def test_crosshair_reads_the_past(devices: Page) -> None:
    """Under the crosshair stands what was there; where nothing was sampled, a dash."""
    plot = devices.locator('[data-panel="ribbon"] .plot').bounding_box()
    assert plot is not None
    expect(cell(devices, 0, "util").locator(".number")).to_have_text("97")
    devices.locator('[data-panel="ribbon"]').scroll_into_view_if_needed()
    plot = devices.locator('[data-panel="ribbon"] .plot').bounding_box()
    devices.mouse.move(plot["x"] + plot["width"] - 20, plot["y"] + 40)
    expect(cell(devices, 0, "util").locator(".number")).to_have_text("–")
    devices.mouse.move(plot["x"] + 52 + (plot["width"] - 62) / 10, plot["y"] + 40)
    expect(cell(devices, 0, "util").locator(".number")).to_have_text("97")


def test_a_range_narrows_the_rows(hub: PlayedHub, open_page) -> None:
    """Over a stretch of time a row tells of that stretch: its values, and what stood against it."""
    run = Devices(hub, [BUSY], None)
    run.play(20)
    run.rows = [{**HOT, "gpu_util": 33.0}]
    run.play(20)
    page = open_page()
    gpus(page, 0).scroll_into_view_if_needed()
    expect(cell(page, 0, "util").locator(".number")).to_have_text("33")
    expect(gpus(page, 0).locator(".gpu-notes")).to_contain_text("memory errors")
    page.evaluate(f"location.hash = '#/run/{run.run}?from=5&to=15'")
    page.wait_for_selector(".range-label:not(:empty)")
    gpus(page, 0).scroll_into_view_if_needed()
    expect(cell(page, 0, "util").locator(".number")).to_have_text("97")
    expect(cell(page, 0, "clock").locator(".said")).to_have_text("")
    expect(gpus(page, 0).locator(".gpu-notes li")).to_have_count(0)
    page.locator(".live").click()
    expect(cell(page, 0, "util").locator(".number")).to_have_text("33")
    expect(gpus(page, 0).locator(".gpu-notes")).to_contain_text("memory errors")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1600, "light")])
def test_eight_devices_on_any_screen(hub: PlayedHub, open_page, width: int, scheme: str) -> None:
    """Eight devices are readable on a phone and on a wide screen: nothing runs off, no number is cut."""
    Devices(hub, [BUSY, HOT] * 4, MEMORY).play(3)
    page = open_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.locator(".gpus").scroll_into_view_if_needed()
    expect(page.locator(".gpu-row")).to_have_count(8)
    gpus(page, 7).scroll_into_view_if_needed()  # what is not on screen is not drawn
    expect(cell(page, 7, "util").locator(".number")).to_have_text("97")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    cut = "els => els.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"
    assert page.eval_on_selector_all(".gpu-cell .now", cut) == []
