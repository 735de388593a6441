import assert from "node:assert/strict";
import { test } from "node:test";

import { chosen, comparable, inOrder } from "../../../static/runs/bar.js";
import { path } from "../../../static/charts/sparkline.js";

const RUNS = [
  {
    run: "a-1", name: "digits", status: "finished", started_unix_s: 1, tags: ["ablation"], note: "first try",
    verdict: { text: "Nothing slowed it." },
  },
  { run: "b-2", name: "digits", status: "running", started_unix_s: 2, finding: "data_starvation", project: "train" },
  { run: "c-3", name: "resnet", status: "killed", started_unix_s: 3, archived: true },
  { run: "d-4", name: null, status: "finished" },
];
const ids = (runs) => runs.map(({ run }) => run);

test("live runs come first, then the newest; one without a start comes last", () => {
  assert.deepEqual(ids(inOrder(RUNS)), ["b-2", "c-3", "a-1", "d-4"]);
  assert.equal(RUNS[0].run, "a-1", "the list given is left as it is");
});

test("every word of a search must stand somewhere: name, id, tag, note, status, finding, project, verdict", () => {
  const found = (query) => ids(chosen(RUNS, query, true));
  assert.deepEqual(found(""), ids(RUNS));
  assert.deepEqual(found("DIGITS"), ["a-1", "b-2"]);
  assert.deepEqual(found("digits starv"), ["b-2"]);
  assert.deepEqual(found("abla"), ["a-1"]);
  assert.deepEqual(found("first"), ["a-1"]);
  assert.deepEqual(found("killed"), ["c-3"]);
  assert.deepEqual(found("slowed"), ["a-1"]);
  assert.deepEqual(found("d-4"), ["d-4"]);
  assert.deepEqual(found("nothing like that"), []);
});

test("archived runs are shown only when they are asked for", () => {
  assert.deepEqual(ids(chosen(RUNS, "", false)), ["a-1", "b-2", "d-4"]);
});

test("the baseline comes first: the project's where it is selected, else the one selected first", () => {
  assert.deepEqual(comparable(new Set(["b-2", "a-1"]), RUNS), ["b-2", "a-1"]);
  const marked = RUNS.map((run) => ({ ...run, baseline: run.run === "a-1" }));
  assert.deepEqual(comparable(new Set(["b-2", "d-4", "a-1"]), marked), ["a-1", "b-2", "d-4"]);
});

test("a run that is gone is no longer selected", () => {
  assert.deepEqual(comparable(new Set(["gone", "a-1"]), RUNS), ["a-1"]);
});

test("a sparkline stands on zero, and what was not measured is a gap", () => {
  assert.equal(path([0, 10], 10), "M2.0 18.0L86.0 2.0");
  assert.equal(path([10, null, 10, "NaN", 5], 10), "M2.0 2.0M44.0 2.0M86.0 10.0");
  assert.equal(path([0, 0], 0), "M2.0 18.0L86.0 18.0");
});
