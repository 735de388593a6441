"""The pictures of the dashboard in docs/screenshots, made anew from played runs. See scripts/screenshots."""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests")]

from conftest import CHROMIUM_ARGS  # noqa: E402 - found beside the tests
from simulated_run import HEALTHY, PlayedHub, PlayedRun  # noqa: E402

RUN, OLD = "20261130-030000-digits-a1b2", "20261129-030000-digits-ffff"
FOLDER = ROOT / "docs" / "screenshots"
ENCODE = """async png => {
  const picture = new Image();
  picture.src = `data:image/png;base64,${png}`;
  await picture.decode();
  const { width, height } = picture;
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  canvas.getContext("2d").drawImage(picture, 0, 0);
  return canvas.toDataURL("image/webp", 0.85).split(",")[1];
}"""
#: name: (address, what must be there, width, height, colour scheme, locale, key pressed)
PICTURES: dict[str, tuple[str, str, int, int, str, str, str]] = {
    "run": (f"#/run/{RUN}", ".main-svg", 1440, 900, "light", "en-GB", ""),
    "run-dark": (f"#/run/{RUN}?finding=data_starvation", ".main-svg", 1440, 900, "dark", "en-GB", ""),
    "run-zh": (f"#/run/{RUN}", ".main-svg", 1440, 900, "light", "zh-CN", ""),
    "phone": (f"#/run/{RUN}", ".finding", 390, 844, "dark", "en-GB", ""),
    "runs": ("#/runs", "tbody tr", 1440, 600, "light", "en-GB", ""),
    "compare": (f"#/compare/{OLD},{RUN}", "main section", 1440, 900, "light", "en-GB", ""),
    "drawer": (f"#/run/{RUN}", ".finding", 1440, 900, "light", "en-GB", "d"),
}


def play(hub: PlayedHub) -> PlayedRun:
    """A run that waits for its data (it goes on), and a healthy one of the day before."""
    before = PlayedRun(hub, name="digits", run=OLD, phases=HEALTHY, gpus=1)
    before.play(90)
    before.end(code=0, clean=True)
    run = PlayedRun(hub, run=RUN, gpus=1)
    run.send(events=[{"kind": "fact", "rank": 0, "name": "plan", "value": {"steps": 60_000}}])
    run.phases = {**HEALTHY, "data": 12.0}
    run.play(60)
    run.phases = {**HEALTHY, "data": 34.0}
    run.play(120)
    return run


def go_on(run: PlayedRun, over: threading.Event) -> None:
    """Train for as long as pictures are taken, so that they show a run that lives."""
    while not over.wait(1.0):
        run.play(1)


def as_webp(page: Page, png: bytes) -> bytes:
    """The same picture at a third of the size, encoded by the browser itself."""
    page.goto("about:blank")
    return b64decode(page.evaluate(ENCODE, b64encode(png).decode()))


def take(browser: Browser, hub: PlayedHub, name: str, picture: tuple[Any, ...]) -> Path:
    """One picture; its file."""
    address, there, width, height, scheme, locale, key = picture
    size = {"width": width, "height": height}
    context = browser.new_context(viewport=size, color_scheme=scheme, locale=locale, reduced_motion="reduce")
    context.add_init_script("localStorage.setItem('torchvitals.notify', 'off')")
    page = context.new_page()
    page.goto(hub.url(address))
    page.wait_for_selector(there, timeout=30_000)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1_500)  # charts are drawn one a frame
    if key:
        page.keyboard.press(key)
        page.wait_for_timeout(700)
    path = FOLDER / f"{name}.webp"
    path.write_bytes(as_webp(page, page.screenshot()))
    context.close()
    return path


def main() -> None:
    """All pictures, or those named."""
    FOLDER.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or list(PICTURES)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        hub = PlayedHub(Path(folder))
        over = threading.Event()
        trainer = threading.Thread(target=go_on, args=(play(hub), over))
        trainer.start()
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM_ARGS)
        for name in wanted:
            path = take(browser, hub, name, PICTURES[name])
            print(f"{path.relative_to(ROOT)} {path.stat().st_size // 1024} kB")
        over.set()
        trainer.join()
        browser.close()
        hub.stop()


if __name__ == "__main__":
    main()
