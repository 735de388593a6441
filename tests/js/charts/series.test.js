import assert from "node:assert/strict";
import { test } from "node:test";

import { lowerBound, Track } from "../../../static/charts/series.js";

const rows = (from, to, key = "a") => {
  const t = Array.from({ length: to - from }, (_, i) => from + i);
  return { t_s: t, [key]: t.map((value) => value * 10) };
};
const base = (t, key = "a") => ({
  t, series: { [key]: { min: t.map((v) => v - 1), max: t.map((v) => v + 1), mean: t } },
});

test("lowerBound finds the first element that is not smaller", () => {
  assert.deepEqual([0, 1, 2, 3, 4].map((value) => lowerBound([1, 3, 3], value)), [0, 0, 1, 1, 3]);
  assert.equal(lowerBound([], 1), 0);
});

test("live rows come out as they went in", () => {
  const track = new Track();
  track.append(rows(0, 3));
  assert.deepEqual(track.view(["a"], 0, 10), {
    t: [0, 1, 2], series: { a: { min: [0, 10, 20], max: [0, 10, 20], mean: [0, 10, 20] } },
  });
});

test("rows that are known already are not taken twice", () => {
  const track = new Track();
  track.append(rows(0, 5));
  track.append(rows(3, 7));
  assert.deepEqual(track.view(["a"], 0, 10).t, [0, 1, 2, 3, 4, 5, 6]);
});

test("live rows continue the history where it ends", () => {
  const track = new Track();
  track.setBase(base([0, 10, 20]), 0, 20);
  track.append(rows(18, 24));
  assert.deepEqual(track.view(["a"], 0, 100).t, [0, 10, 20, 21, 22, 23]);
});

test("a view reaches one point beyond either edge, so that lines run off the plot", () => {
  const track = new Track();
  track.append(rows(0, 100));
  assert.deepEqual(track.view(["a"], 10, 12).t, [9, 10, 11, 12, 13].slice(0, 4));
});

test("what is kept is bounded, and the oldest goes first", () => {
  const track = new Track();
  for (let i = 0; i < 5000; i += 100) track.append(rows(i, i + 100));
  assert.equal(track.size, 1200);
  assert.equal(track.end, 4999);
  assert.equal(track.view(["a"], 0, 1e9).t[0], 3800);
});

test("a column that appears later is null before, one that stops is null after", () => {
  const track = new Track();
  track.append({ t_s: [0, 1], a: [5, 6] });
  track.append({ t_s: [2], b: [7] });
  const { series } = track.view(["a", "b", "c"], 0, 9);
  assert.deepEqual(series.a.mean, [5, 6, null]);
  assert.deepEqual(series.b.mean, [null, null, 7]);
  assert.deepEqual(series.c.mean, [null, null, null]);
});

test("not-a-number is a gap, never a zero", () => {
  const track = new Track();
  track.append({ t_s: [0, 1, 2, 3], a: ["NaN", null, "Infinity", 4] });
  assert.deepEqual(track.view(["a"], 0, 9).series.a.mean, [null, null, null, 4]);
});

test("it knows whether everything from a moment on is here", () => {
  const track = new Track();
  assert.equal(track.covers(0), false);
  track.append(rows(50, 60));
  assert.equal(track.covers(50), true);
  assert.equal(track.covers(0), false);
  track.setBase(base([0, 20, 40]), -Infinity, 49);
  assert.equal(track.covers(0), false, "rows between the history's end and the tail are missing");
  track.setBase(base([0, 20, 40, 55]), -Infinity, 59);
  assert.equal(track.covers(0), true);
});

test("a history of a narrower range does not pretend to be the whole", () => {
  const track = new Track();
  track.append(rows(50, 60));
  track.setBase(base([30, 40]), 30, 59);
  assert.equal(track.covers(30), true);
  assert.equal(track.covers(0), false);
});

test("after missed rows the tail starts anew", () => {
  const track = new Track();
  track.setBase(base([0, 1, 2]), -Infinity, 2);
  track.append(rows(0, 10));
  track.cut();
  track.append(rows(40, 45));
  assert.equal(track.covers(0), false);
  assert.deepEqual(track.view(["a"], 0, 100).t, [0, 1, 2, 40, 41, 42, 43, 44]);
});

test("empty answers and empty rows are no trouble", () => {
  const track = new Track();
  track.setBase({}, 0, 0);
  track.append({});
  track.append({ t_s: [] });
  assert.deepEqual(track.view(["a"], 0, 10), { t: [], series: { a: { min: [], max: [], mean: [] } } });
  assert.equal(track.end, null);
});
