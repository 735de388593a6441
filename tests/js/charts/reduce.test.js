import assert from "node:assert/strict";
import { test } from "node:test";

import { reduced } from "../../../static/charts/series.js";

const line = (values) => ({ t: values.map((_, i) => i), min: values, max: values, mean: values });
const many = line(Array.from({ length: 1000 }, (_, i) => Math.sin(i / 50)));

test("a line with fewer points than pixels stays as it is", () => {
  const short = line([1, 2, 3]);
  assert.deepEqual(reduced(short, 0, 3, 10), short);
});

test("never many more points than asked for, and times still rise", () => {
  const { t } = reduced(many, 0, 1000, 300);
  assert.ok(t.length <= 301 && t.length > 140);
  assert.ok(t.every((time, i) => i === 0 || time > t[i - 1]));
});

test("a single spike survives, however much is reduced", () => {
  const spiked = line(Array.from({ length: 1000 }, (_, i) => (i === 517 ? 99 : 1)));
  const { max, min } = reduced(spiked, 0, 1000, 50);
  assert.equal(Math.max(...max), 99);
  assert.equal(Math.min(...min), 1);
});

test("gaps stay gaps and are no zeros", () => {
  const gap = line(Array.from({ length: 100 }, (_, i) => (i >= 40 && i < 60 ? null : 5)));
  const { mean } = reduced(gap, 0, 100, 20);
  assert.ok(mean.includes(null));
  assert.ok(mean.every((value) => value === null || value === 5));
});

test("old points do not move while time goes on", () => {
  const before = reduced(many, 0, 1000, 300);
  const after = reduced(line([...many.t, 1000, 1001].map((i) => Math.sin(i / 50))), 0, 1002, 300);
  assert.deepEqual(after.t.slice(0, before.t.length - 1), before.t.slice(0, -1));
  assert.deepEqual(after.mean.slice(0, before.t.length - 1), before.mean.slice(0, -1));
});
