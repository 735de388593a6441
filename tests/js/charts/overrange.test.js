import assert from "node:assert/strict";
import { test } from "node:test";

import { address } from "../../../static/app/drawertables.js";
import { useMessages } from "../../../static/locale/i18n.js";
import { TimeRange } from "../../../static/charts/range.js";
import { tilesOver } from "../../../static/app/tiles.js";
import { Track } from "../../../static/charts/series.js";
import { curve } from "../../../static/charts/sparkline.js";

function track(columns) {
  const made = new Track();
  made.append({ t_s: [0, 10, 20, 30], ...columns });
  return made;
}

test("tiles over a range are means of what lies in it", () => {
  const tracks = new Map([
    ["run", track({ steps_per_s: [1, 2, 4, 100], run_loss: [9, 3, 1, 0] })],
    ["proc/0", track({ rss_mb: [100, 200, 400, 0] })], ["proc/1", track({ rss_mb: [1, 2, 4, 0] })],
    ["gpu/box/0", track({ gpu_util: [0, 50, 70, 0] })],
  ]);
  const tiles = tilesOver(tracks, [10, 20], { gpu: [{ gpu: "box/0", gpu_memory_total_mb: 8 }] });
  assert.deepEqual([tiles.steps_per_s, tiles.loss, tiles.rss_mb], [3, 2, 303]);
  assert.deepEqual(tiles.gpu, [{ gpu: "box/0", gpu_memory_total_mb: 8, gpu_util: 60, gpu_memory_used_mb: null }]);
});

test("ranks are combined by the rule that the run's schema declares", () => {
  const tracks = new Map([
    ["proc/0", track({ rss_mb: [1, 2, 4, 0] })], ["proc/1", track({ rss_mb: [2, 3, 5, 1] })],
  ]);
  const by = (ranks) => tilesOver(tracks, [10, 20], {}, { metrics: [{ key: "rss_mb", ranks }] }).rss_mb;
  assert.deepEqual(["mean", "sum", "max", "min", "last"].map(by), [3.5, 7, 4, 3, 4]);
});

test("what was not measured in the range is null, and a run without GPU has none", () => {
  const tiles = tilesOver(new Map(), [0, 1], { gpu: null });
  assert.deepEqual([tiles.steps_per_s, tiles.cpu_used, tiles.gpu], [null, null, null]);
});

test("a finding's curve shows its metric over the range, from zero to its peak", () => {
  const tracks = new Map([["run", track({ data_share: [0.5, 0.25, 0, null] })]]);
  const points = curve({ curve: ["run", "data_share"] }, tracks, [0, 20]);
  assert.deepEqual(points.map(([x]) => x), [2, 60, 118]);
  assert.deepEqual(points.map(([, y]) => y), [2, 14, 26]);
});

test("the curve is of the finding's own rank where there is one", () => {
  const tracks = new Map([
    ["proc/0", track({ tree_pss_mb: [1, 1, 1, 1] })], ["proc/2", track({ tree_pss_mb: [4, 2, 2, 2] })],
  ]);
  assert.deepEqual(curve({ curve: ["proc", "tree_pss_mb"], ranks: [2] }, tracks, [0, 30])[0], [2, 2]);
});

test("no curve where nothing was measured or no metric shows it", () => {
  assert.equal(curve({ curve: ["run", "data_share"] }, new Map(), [0, 20]), null);
  assert.equal(
    curve(
      { curve: ["run", "data_share"] }, new Map([["run", track({ data_share: [null, 0.5, null, null] })]]), [0, 30],
    ),
    null,
  );
  assert.equal(curve({ curve: null }, new Map([["run", track({ data_share: [1, 1, 1, 1] })]]), [0, 30]), null);
});

test("downloads ask for the visible range only when the viewer chose one", () => {
  const range = new TimeRange();
  const csv = { file: "export.csv", stream: true };
  assert.equal(address("a b", range, csv, "rank/0"), "api/runs/a%20b/export.csv?stream=rank%2F0");
  range.hold(2, 9);
  assert.equal(
    address("r", range, { file: "export.json", stream: false }, "rank/0"), "api/runs/r/export.json?from=2&to=9",
  );
});

test("a report comes in the language of the page, and nothing else is asked for one", () => {
  const range = new TimeRange();
  const [html, csv] = [{ file: "export.html", language: true }, { file: "export.csv", stream: true, language: false }];
  assert.equal(address("r", range, html, ""), "api/runs/r/export.html");
  useMessages("zh-CN", {});
  try {
    assert.equal(address("r", range, html, ""), "api/runs/r/export.html?language=zh-CN");
    assert.equal(address("r", range, csv, "rank/0"), "api/runs/r/export.csv?stream=rank%2F0");
  } finally {
    useMessages("en", {});
  }
});
