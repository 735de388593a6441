import assert from "node:assert/strict";
import { test } from "node:test";

import { timeText } from "../../../static/app/format.js";
import { timeTicks, valueTicks } from "../../../static/charts/picture.js";

test("time marks are round and few at every zoom", () => {
  for (const span of [0.02, 0.7, 5, 42, 90, 600, 5000, 40_000, 400_000, 4e6, 4e8]) {
    const { values, texts } = timeTicks(0, span, 8);
    assert.ok(values.length >= 2 && values.length <= 9, `${values.length} marks over ${span} s`);
    assert.equal(new Set(texts).size, texts.length, `all marks differ: ${texts}`);
  }
});

test("marks lie inside the range", () => {
  const { values } = timeTicks(101.3, 163.2, 6);
  assert.ok(values.every((value) => value >= 101.3 - 1e-6 && value <= 163.2 + 1e-6));
  assert.deepEqual(values, [110, 120, 130, 140, 150, 160].filter((v) => values.includes(v)));
});

test("time reads as seconds, minutes, hours and days since the start", () => {
  assert.deepEqual(
    [
      [0.25, 0.05], [42, 10], [90, 30], [120, 60], [3700, 300], [7200, 3600], [7261, 1], [180_000, 43_200],
      [172_800, 86_400],
    ].map(([s, step]) => timeText(s, step)),
    ["0.25 s", "42 s", "1:30", "2 min", "1:01 h", "2 h", "2:01:01", "2 d 2:00", "2 d"],
  );
});

test("a value axis covers what it must, with marks at round places", () => {
  assert.deepEqual(valueTicks(0, 87).values, [0, 25, 50, 75]);
  for (const [low, high] of [[0, 1], [0, 0.003], [0, 48_213], [2.1, 2.4], [-3, 5], [0, 0], [7, 7]]) {
    const { range, values } = valueTicks(low, high);
    assert.ok(range[0] <= low && range[1] > high, `${range} covers ${low} to ${high}`);
    assert.ok(values.length >= 1 && values.length <= 7, `${values}`);
  }
});

test("a slightly higher peak does not move the axis each time", () => {
  const tops = new Set([84, 84.2, 84.4, 84.6, 84.8].map((high) => valueTicks(0, high).range[1]));
  assert.ok(tops.size <= 2);
});
