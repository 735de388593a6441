import assert from "node:assert/strict";
import { test } from "node:test";

import { evidence } from "../../../static/findings/evidence.js";

const shown = (key, value) => {
  const { label, value: text } = evidence(key, value);
  return `${label}: ${text?.replaceAll("\u202f", " ")}`;
};

test("names that carry a unit lose it and show it beside the value", () => {
  assert.equal(shown("wait_p50_ms", 14.4), "wait p50: 14.4 ms");
  assert.equal(shown("wait_ms_p95", 143), "wait p95: 143 ms");
  assert.equal(shown("rss_mb", 900), "rss: 900 MB");
  assert.equal(shown("steps_per_s", 20.5), "steps: 20.5/s");
  assert.equal(shown("stalled_s", 31), "stalled: 31 s");
});

test("shares are percent", () => {
  assert.equal(shown("data_share", 0.313), "data share: 31 %");
  assert.equal(shown("share", 0.02), "share: 2.0 %");
});

test("plain counts stay plain", () => {
  assert.equal(shown("usable_cpus", 2), "usable cpus: 2");
  assert.equal(shown("sharers", 3), "sharers: 3");
});

test("text, lists, flags and objects are shown, and long ones cut", () => {
  assert.equal(shown("where", "train.py:3"), "where: train.py:3");
  assert.equal(shown("workers", [1, 2.5]), "workers: 1, 2.50");
  assert.equal(shown("pinned", false), "pinned: no");
  assert.equal(shown("by", { a: 1 }), 'by: {"a":1}');
  assert.equal(evidence("long", "x".repeat(1000)).value.length, 161);
});

test("what was not measured is null", () => {
  assert.deepEqual(evidence("gpu_util", null), { label: "gpu util", value: null });
});
