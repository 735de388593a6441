import assert from "node:assert/strict";
import { test } from "node:test";

import { distance } from "../../../static/compare/baseline.js";
import { linesOf, pictureOf } from "../../../static/compare/curves.js";
import { scale, signed, times } from "../../../static/compare/measured.js";
import { parse, toCompare } from "../../../static/app/route.js";

test("a comparison's address holds its runs and its axis, and leads back", () => {
  const odd = ["20261130-a b", "ä,/x"];
  assert.deepEqual(parse(toCompare(["a", "b"])), { view: "compare", runs: ["a", "b"], align: "step" });
  assert.deepEqual(parse(toCompare(odd, "time")), { view: "compare", runs: odd, align: "time" });
  assert.deepEqual(parse("#/compare/a,b/colour"), { view: "compare", runs: ["a", "b"], align: "step" });
  assert.deepEqual(parse("#/compare/"), { view: "home" });
});

test("the interval's axis is logarithmic, holds 1 and both ends, and marks round ratios inside", () => {
  const { at, marks } = scale({ low: 1.6, high: 11 });
  assert.ok(at(1) > 0 && at(1.6) > at(1) && at(11) < 100);
  assert.ok(Math.abs(at(4) - at(2) - (at(2) - at(1))) < 1e-9);
  assert.deepEqual(marks, [1, 2, 5, 10]);
  assert.deepEqual(scale({ low: 0.97, high: 1.02 }).marks, [1]);
});

test("a ratio has the digits that it deserves", () => {
  assert.deepEqual([1, 1.834, 9.999, 18.37, 123.4].map(times), ["1.00", "1.83", "10.00", "18.4", "123"]);
});

test("a change is signed, and next to none is none", () => {
  assert.deepEqual([0.123, -0.5, 0.0001, Infinity, NaN].map(signed), ["+12\u202f%", "−50\u202f%", "=", "", ""]);
});

const CURVES = [
  { run: "a", x: [1, 2, 3, 4], step_ms: [900, 10, 11, null], loss: [null, null, null, null] },
  { run: "b", x: [1, 2], step_ms: [5, 5], loss: [2, 1.5] },
];

test("a run without a value has no line, and each keeps its own colour in every chart", () => {
  const steps = linesOf(CURVES, "step_ms", "light");
  const loss = linesOf(CURVES, "loss", "light");
  assert.equal(steps.length, 2);
  assert.equal(loss.length, 1);
  assert.equal(loss[0].colour, steps[1].colour);
  assert.notEqual(steps[0].colour, steps[1].colour);
});

test("one slow step does not flatten the rest, and times are marked as times", () => {
  const many = [
    { run: "a", x: Array.from({ length: 200 }, (_, i) => i), step_ms: [900, ...new Array(199).fill(10)], loss: [] },
  ];
  const { x, y } = pictureOf(linesOf(many, "step_ms", "dark"), "time", false, 600, {});
  assert.ok(y.range[1] < 50);
  assert.equal(y.range[0], 0);
  assert.ok(x.texts.some((text) => text.endsWith(":00") || text.endsWith("min") || text.endsWith("s")), x.texts.join());
});

test("the distance to the baseline says when chance explains it, and nothing where nothing is known", () => {
  const speed = { speedup: 1.34, low: 1.2, high: 1.5, verdict: "faster" };
  assert.equal(distance({ name: "base" }, speed), "1.34× as fast as baseline base (1.20 to 1.50)");
  assert.match(distance({ name: "base" }, { ...speed, low: 0.9, verdict: "no difference" }), /chance/);
  assert.match(
    distance({ name: "base" }, { ...speed, low: null, high: null, verdict: "unknown" }), /too little is known/,
  );
  assert.equal(distance({ name: "base" }, { ...speed, speedup: null }), null);
  assert.match(distance({ name: "base" }, null), /is the baseline/);
});
