import assert from "node:assert/strict";
import { test } from "node:test";

import { TimeRange } from "../../../static/charts/range.js";

test("a young run is drawn on an axis of half a minute", () => {
  const range = new TimeRange();
  range.advance(4);
  assert.deepEqual(range.bounds, [0, 30]);
});

test("while following, the newest data is the right edge", () => {
  const range = new TimeRange();
  range.advance(500);
  assert.deepEqual(range.bounds, [0, 500]);
  range.follow(120);
  range.advance(600);
  assert.deepEqual(range.bounds, [480, 600]);
});

test("a range that the viewer chose stays although time goes on", () => {
  const range = new TimeRange();
  range.hold(10, 20);
  range.advance(900);
  assert.deepEqual(range.bounds, [10, 20]);
  assert.equal(range.following, false);
  range.follow();
  assert.deepEqual(range.bounds, [0, 900]);
});

test("a range drawn from right to left is the same range", () => {
  const range = new TimeRange();
  range.hold(20, 10);
  assert.deepEqual(range.bounds, [10, 20]);
});

test("no range begins before the run or is narrower than can be drawn", () => {
  const range = new TimeRange();
  range.hold(-50, 10);
  assert.equal(range.bounds[0], 0);
  range.hold(5, 5);
  assert.ok(range.bounds[1] - range.bounds[0] >= 0.04);
  range.hold(Number.NaN, 5);
  assert.ok(range.bounds.every(Number.isFinite));
});

test("zooming keeps the point under the pointer, moving keeps the width", () => {
  const range = new TimeRange();
  range.hold(100, 200);
  range.zoom(0.5, 0.25);
  assert.deepEqual(range.bounds, [112.5, 162.5]);
  range.move(-0.5);
  assert.deepEqual(range.bounds, [87.5, 137.5]);
  range.move(-100);
  assert.deepEqual(range.bounds, [0, 50]);
});

test("listeners hear whether the viewer moved it or time went on, until they disconnect", () => {
  const range = new TimeRange();
  const heard = [];
  const listener = (moved) => heard.push(moved);
  range.connect(listener);
  range.advance(40);
  range.advance(40);
  range.hold(1, 2);
  range.advance(50);
  range.disconnect(listener);
  range.follow();
  assert.deepEqual(heard, [false, true]);
});
