import assert from "node:assert/strict";
import { test } from "node:test";

import { grown, keysByOrigin, metricsOf, streamsOf } from "../../../static/charts/panels.js";
import { linesOf, pictureOf, valueAt } from "../../../static/charts/picture.js";
import { Track } from "../../../static/charts/series.js";

const metric = (key, origin, buckets = "mean", title = key) => ({ key, origin, buckets, title, unit: "" });
const series = (key, more = {}) => ({ key, label: "", limit: false, ...more });
const schema = {
  metrics: [
    metric("steps_per_s", "run"), metric("step_p50_ms", "run"), metric("step_p99_ms", "run", "max"),
    metric("step_ms", "step"), metric("rss_mb", "proc", "max"), metric("memory_limit_mb", "host", "min"),
    metric("cpu_used", "host"), metric("cpu_usable", "host", "min"),
    metric("run_data_ms", "run", "mean", "data"), metric("run_comm_ms", "run", "mean", "comm"),
  ],
  panels: [
    { id: "ribbon", kind: "stack", unit: "ms", series: [series("run_data_ms"), series("run_comm_ms")] },
    { id: "data", kind: "lines", unit: "share", most: 1, series: [series("data_share")] },
    { id: "throughput", kind: "choose", unit: "1/s", series: [series("steps_per_s")] },
    {
      id: "step", kind: "lines", unit: "ms",
      series: [series("step_p50_ms", { label: "p50" }), series("step_p95_ms"), series("step_p99_ms")],
    },
    { id: "memory", kind: "lines", unit: "MB", series: [series("rss_mb"), series("memory_limit_mb", { limit: true })] },
    { id: "cpu", kind: "lines", unit: "cores", series: [series("cpu_used"), series("cpu_usable", { limit: true })] },
    { id: "loss", kind: "choose", unit: "", floating: true, outlier: 25, user: true, series: [series("run_loss")] },
    { id: "gpu", kind: "lines", unit: "%", most: 100, series: [series("gpu_util")] },
  ],
};
const panel = (id) => schema.panels.find((p) => p.id === id);
const tracks = (rows) => new Map(Object.entries(rows).map(([name, columns]) => {
  const track = new Track();
  track.append(columns);
  return [name, track];
}));
const lines = (id, rows, more = {}) => linesOf(panel(id), { schema, tracks: tracks(rows), ...more }, [0, 10], "light");
const picture = (id, rows) => pictureOf(panel(id), lines(id, rows), [0, 10], { width: 400, ink: {}, draggable: true });

test("charts are made from the schema that came with the run", () => {
  assert.deepEqual(metricsOf(panel("step"), schema).map(({ key }) => key), ["step_p50_ms", "step_p99_ms"]);
  assert.deepEqual(
    metricsOf(panel("cpu"), schema).map(({ key, limit }) => [key, limit]),
    [
      ["cpu_used", false], ["cpu_usable", true],
    ],
  );
  assert.deepEqual(metricsOf(panel("step"), null), []);
});

test("a metric that this page has never heard of is drawn under its own title", () => {
  const newer = { metrics: [...schema.metrics, metric("step_p999_ms", "run", "max", "step time p99.9")] };
  const more = { ...panel("step"), series: [...panel("step").series, series("step_p999_ms")] };
  assert.deepEqual(metricsOf(more, newer).map(({ label }) => label), ["p50", "step_p99_ms", "step time p99.9"]);
});

test("numbers of the user's own join the schema as they come", () => {
  const rows = {
    run: { t_s: [1], novel: [1] }, "user/0": { t_s: [1], accuracy: [0.5] }, "user/1": { t_s: [1], "eval/loss": [2] },
  };
  const more = grown(schema, rows);
  assert.deepEqual(
    metricsOf(panel("loss"), more).map(({ key, origin }) => [key, origin]),
    [
      ["accuracy", "user"], ["eval/loss", "user"],
    ],
  );
  assert.deepEqual(keysByOrigin(more).user, ["accuracy", "eval/loss"]);
  assert.equal(grown(more, rows), more);
  assert.equal(grown(schema, { run: rows.run }), schema);
  assert.equal(grown(null, rows), null);
});

test("of the user's numbers one is drawn, for each rank that logs it", () => {
  const rows = { "user/0": { t_s: [1], accuracy: [0.5] }, "user/1": { t_s: [1], accuracy: [0.6], lr: [1] } };
  const drawn = lines("loss", rows, { schema: grown(schema, rows), chosen: "accuracy" });
  assert.deepEqual(drawn.map(({ key, mean }) => [key, mean]), [["accuracy", [0.5]], ["accuracy", [0.6]]]);
});

test("only what charts need is asked of the hub", () => {
  assert.deepEqual(keysByOrigin(schema).host, ["memory_limit_mb", "cpu_used", "cpu_usable"]);
  assert.equal(keysByOrigin(schema).step, undefined);
});

test("streams are found by kind, in natural order, and bounded", () => {
  assert.deepEqual(streamsOf("proc", ["proc/10", "run", "proc/2", "process/1"]), ["proc/2", "proc/10"]);
  assert.equal(streamsOf("proc", Array.from({ length: 100 }, (_, i) => `proc/${i}`)).length, 8);
});

test("a series that was never measured has no line", () => {
  assert.deepEqual(
    lines("step", { run: { t_s: [1, 2], step_p50_ms: [3, 4], step_p99_ms: [null, null] } }).map(({ key }) => key),
    ["step_p50_ms"],
  );
});

test("of a stack only phases that took time are drawn", () => {
  const drawn = lines("ribbon", { run: { t_s: [1, 2], run_data_ms: [3, 4], run_comm_ms: [0, 0] } });
  assert.deepEqual(drawn.map(({ phase }) => phase), ["data"]);
});

test("each rank has its line, and the same colour says the same thing", () => {
  const [a, b] = lines("memory", { "proc/0": { t_s: [1], rss_mb: [5] }, "proc/1": { t_s: [1], rss_mb: [6] } });
  assert.equal(a.colour, b.colour);
  assert.equal(a.dash, b.dash);
});

test("the axis starts at zero and covers the data", () => {
  const { y } = picture("step", { run: { t_s: [1, 2], step_p50_ms: [30, 40], step_p99_ms: [50, 60] } }).picture;
  assert.equal(y.range[0], 0);
  assert.ok(y.range[1] > 60);
});

test("one enormous value does not flatten the rest, and is told", () => {
  const t = Array.from({ length: 200 }, (_, i) => i / 20);
  const {
    picture: { y }, clipped,
  } = picture("step", { run: { t_s: t, step_p50_ms: t.map((_, i) => (i === 0 ? 5000 : 40)) } });
  assert.ok(y.range[1] < 100);
  assert.equal(clipped, 5000);
});

test("limits far above do not stretch the axis", () => {
  const rows = {
    "proc/0": { t_s: [1, 2], rss_mb: [800, 820] }, "host/a": { t_s: [1, 2], memory_limit_mb: [64_000, 64_000] },
  };
  assert.ok(picture("memory", rows).picture.y.range[1] < 2000);
});

test("a share never shows an axis beyond the whole", () => {
  const only = { metrics: [metric("data_share", "run")] };
  const drawn = linesOf(
    panel("data"), { schema: only, tracks: tracks({ run: { t_s: [1, 2], data_share: [0.99, 1] } }) }, [0, 10], "dark",
  );
  const { y } = pictureOf(panel("data"), drawn, [0, 10], { width: 300, ink: {}, draggable: false }).picture;
  assert.ok(y.range[1] <= 1.02);
  assert.ok(y.texts.includes("100\u2009%"));
});

test("a read-out is the nearest point, the newest known, or nothing", () => {
  const line = { t: [0, 1, 2, 3], drawn: [10, 11, 12, null] };
  assert.equal(valueAt(line, 1.4), 11);
  assert.equal(valueAt(line, null), 12);
  assert.equal(valueAt(line, 3), null);
  assert.equal(valueAt(line, 50), null);
  assert.equal(valueAt({ t: [], drawn: [] }, null), null);
});
