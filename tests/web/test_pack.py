"""The page's modules in one file."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from webhub import Hub

from monitor.web import assets, pack

DOM = """/** Elements. */
const SECRET = 1;
let made = 0;
export function h(name) {
  made += SECRET;
  return `${name}${made}`;
}
export const N = (text) => text;
"""
CARD = """import { h as make, N } from "../app/dom.js";
const SECRET = 20; // the name of a neighbour's own
export class Card {
  text = N(make("card")) + SECRET;
}
export async function later() {
  return 1;
}
"""
DRAWER = """import { h } from "./dom.js";
export const DRAWER = h("drawer");
"""
WORDS = "export const WORDS = { yes: 1 };\n"
MAIN = """import { Card } from "../charts/card.js";
import { h } from "./dom.js";
const { DRAWER } = await import("./drawer.js");
const { WORDS } = await import("../locale/words.js");
console.log(JSON.stringify([new Card().text, h("main"), DRAWER, WORDS]));
"""
SOURCES = {
    "app/main.js": MAIN,
    "app/dom.js": DOM,
    "charts/card.js": CARD,
    "app/drawer.js": DRAWER,
    "locale/words.js": WORDS,
}


def run(folder: Path, name: str) -> list[object]:
    """What a module prints."""
    node = shutil.which("node")
    assert node is not None
    done = subprocess.run([node, name], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_it_does_what_the_modules_do(tmp_path: Path) -> None:
    """Same values; each module is there once, also one that is imported later, and names do not clash."""
    for name, source in SOURCES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "all.js").write_text(pack.packed(SOURCES, "app/main.js"))
    alone, together = run(tmp_path, "app/main.js"), run(tmp_path, "all.js")
    assert alone == ["card220", "main3", "drawer1", {"yes": 1}]
    # what is imported later is made at once, and so comes first in the packed file too
    assert together == alone


def test_what_shares_nothing_stays_a_file_of_its_own() -> None:
    """A language that few read is loaded by those."""
    text = pack.packed(SOURCES, "app/main.js")
    assert 'await import("./locale/words.js")' in text
    assert "yes: 1" not in text
    assert 'import("./drawer.js")' not in text


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ({"main.js": 'import { a } from "./b.js";'}, "main.js imports b.js, which is not there"),
        (
            {"main.js": 'import { a } from "./b.js";', "b.js": 'import { b } from "./main.js";'},
            "main.js imports b.js imports main.js",
        ),
        ({"app/main.js": 'import { a } from "../b.js";'}, "main.js imports b.js, which is not there"),
        ({"main.js": 'import { a } from "../main.js";'}, "main.js imports ../main.js, which is not there"),
        ({"main.js": 'import * as all from "./b.js";', "b.js": ""}, "main.js: import * as all"),
        ({"main.js": 'import { a } from "./b.js";', "b.js": "export default 1;"}, "b.js: export default 1"),
        ({"main.js": 'import { a } from "./b.js";', "b.js": "export { a };"}, "b.js: export { a };"),
    ],
)
def test_what_it_does_not_know_is_named(sources: dict[str, str], said: str) -> None:
    """A page that half works would be found by its users."""
    with pytest.raises(pack.PackError, match=re.escape(said)):
        pack.packed(sources, next(iter(sources)))


def test_all_our_modules_can_be_packed() -> None:
    """Whatever the page imports is in it."""
    text = pack.script().text.decode()
    modules = {name for name in assets.static_files() if name.endswith(".js")}
    beside = {name for name in modules if f"// {name}\n" not in text}
    assert beside == set()


def test_all_styles_are_in_one_file() -> None:
    """None is forgotten, in the order in which the page had them."""
    assert sorted(pack.STYLES) == sorted(name for name in assets.static_files() if name.endswith(".css"))
    text = pack.style().text.decode()
    places = [text.index((assets.folder("static") / name).read_text()) for name in pack.STYLES]
    assert places == sorted(places)


def test_a_changed_module_changes_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Browsers keep the file for ever under its address."""
    shutil.copytree(assets.folder("static"), tmp_path / "static")
    monkeypatch.setattr(assets, "folder", lambda name: tmp_path / name)
    before = pack.script()
    assert pack.script() is before
    with (tmp_path / "static" / "app" / "route.js").open("a") as file:
        file.write("// changed\n")
    assert pack.script().tag != before.tag


def test_the_page_names_both_files_by_their_version(hub: Hub) -> None:
    """Kept for ever by that address, asked for again by any other; compressed for those who take it."""
    page = hub.get("/").text
    for made, name in ((pack.script(), pack.SCRIPT), (pack.style(), pack.STYLE)):
        assert f"static/{name}?v={made.tag}" in page
        kept = hub.get(f"/static/{name}?v={made.tag}", headers={"Accept-Encoding": "gzip"})
        assert (kept.headers["Content-Encoding"], kept.content) == ("gzip", made.text)
        assert "immutable" in kept.headers["Cache-Control"]
        plain = hub.get(f"/static/{name}")
        assert (plain.content, plain.headers["Cache-Control"]) == (made.text, "no-cache")
        again = hub.get(f"/static/{name}", headers={"If-None-Match": plain.headers["ETag"]})
        assert again.status_code == 304


def test_a_page_that_is_not_installed_says_so(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package without its static files is no failure of the hub."""
    (tmp_path / "static").mkdir()
    monkeypatch.setattr(assets, "folder", lambda name: tmp_path / name)
    answer = hub.get("/")
    assert (answer.status_code, "install torchvitals again" in answer.text) == (503, True)
    with pytest.raises(pack.PackError, match=r"app/style\.css is not there"):
        pack.style()
    with pytest.raises(pack.PackError, match=r"the page imports app/main\.js, which is not there"):
        pack.script()
