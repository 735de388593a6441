"""Charts are declared once, and each that is declared is drawn: by the page, by the report, or by both."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from batches import Training
from sources import ROOT

from monitor.exports.charts import charts
from monitor.exports.choice import Choice
from monitor.panels import PANELS, Panel, drawn_by, with_panels
from monitor.schema import BY_KEY, describe
from monitor.store import Store

#: Streams whose rows the page has.
ON_THE_PAGE = {"run", "proc", "host", "gpu"}
DRAW = """
import { metricsOf, streamsOf } from "./charts/panels.js";
import { linesOf, pictureOf } from "./charts/picture.js";
import { Track } from "./charts/series.js";
const { schema, streams } = JSON.parse(process.argv[1]);
const tracks = new Map(Object.entries(streams).map(([name, columns]) => {
  const track = new Track();
  track.append(columns);
  return [name, track];
}));
const size = { width: 400, ink: {}, draggable: false };
const drawn = schema.panels.map((panel) => {
  const keys = panel.kind === "choose" ? metricsOf(panel, schema).map(({ key }) => key) : [null];
  const lines = keys.flatMap((chosen) => linesOf(panel, { schema, tracks, chosen }, [0, 10], "light"));
  return [panel.id, pictureOf(panel, lines, [0, 10], size).picture.lines.map(({ key }) => key)];
});
console.log(JSON.stringify(Object.fromEntries(drawn)));
"""


def keys_of(panel: Panel) -> list[str]:
    return [series.key for series in panel.series]


def test_each_has_a_name_and_shows_known_metrics() -> None:
    """No name twice, no key that nobody measures, no chart that nobody draws."""
    assert len({panel.id for panel in PANELS}) == len(PANELS)
    assert [key for panel in PANELS for key in keys_of(panel) if key not in BY_KEY] == []
    assert [panel.id for panel in PANELS if not panel.targets or not panel.series] == []


def test_the_page_draws_each_of_its_charts() -> None:
    """With all of its series, where each of them was measured."""
    wanted = {panel.id: keys_of(panel) for panel in drawn_by("page")}
    streams: dict[str, dict[str, list[float]]] = {}
    for key in {key for keys in wanted.values() for key in keys}:
        streams.setdefault(BY_KEY[key].origin, {"t_s": [1.0, 2.0]})[key] = [1.0, 2.0]
    assert streams.keys() <= ON_THE_PAGE
    given = json.dumps({"schema": with_panels(describe()), "streams": streams})
    run = ["node", "--input-type=module", "-e", DRAW, given]
    told = subprocess.run(run, cwd=ROOT / "static", capture_output=True, check=True, timeout=60)
    assert json.loads(told.stdout) == wanted


@pytest.mark.parametrize("panel", drawn_by("report"), ids=lambda panel: panel.id)
def test_the_report_draws_each_of_its_charts(panel: Panel, tmp_path: Path) -> None:
    """Where it was measured: several lines of the whole run, or one for each rank or device."""
    (origin,) = {BY_KEY[key].origin for key in keys_of(panel)}
    assert origin == "run" or len(panel.series) == 1
    training = Training(ranks=2)
    with Store(tmp_path / "store.sqlite", create=True) as store:
        store.append(training.start())
        store.append(training.batch(10))
        if origin != "step":
            name = origin if origin == "run" else f"{origin}/0"
            store.append(training.sample(name, **dict.fromkeys(keys_of(panel), 1.0)))
        found = re.findall("<figcaption>([^<]+)", "".join(charts(store, Choice())))
    assert (f"{panel.title} ({panel.unit})" if panel.unit else panel.title) in found


def test_a_run_keeps_the_charts_that_it_came_with() -> None:
    """One of a newer agent has others; one of an older version has none, and gets this hub's."""
    assert with_panels({"panels": [], "metrics": []})["panels"] == []
    assert [panel["id"] for panel in with_panels({})["panels"]] == [panel.id for panel in drawn_by("page")]
