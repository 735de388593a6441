import assert from "node:assert/strict";
import { test } from "node:test";

import {
  age, count, duration, finite, joined, number, percent, quantity, withUnit,
} from "../../../static/app/format.js";

const plain = (text) => text?.replaceAll("\u202f", " ");

test("numbers keep about three digits", () => {
  const shown = [0, 7, 0.1234, 1.005, 12.345, 123.4, 1234, 1234567, -5.5].map(number).map(plain);
  assert.deepEqual(shown, ["0", "7", "0.123", "1.00", "12.3", "123", "1 234", "1 234 567", "−5.50"]);
});

test("very small and very large numbers use an exponent", () => {
  assert.equal(number(0.00001234), "1.23e−5");
  assert.equal(number(1e18), "1.00e+18");
});

test("what was not measured stays null and is never a zero", () => {
  for (const f of [number, count, percent, duration, age, (v) => withUnit(v, "ms"), (v) => quantity(v, "ms").text]) {
    assert.equal(f(null), null);
  }
  assert.equal(number(undefined), null);
});

test("values that diverged are named, not hidden", () => {
  assert.equal(number("NaN"), "NaN");
  assert.equal(number(Number.NaN), "NaN");
  assert.equal(number(Infinity), "∞");
  assert.equal(finite("NaN"), null);
});

test("units scale so that they can be read", () => {
  const shown = [
    [12.34, "ms"], [12345, "ms"], [900, "MB"], [24576, "MB"], [42.1, "1/s"], [0.314, "share"], [1.5, "cores"],
    [3, ""],
  ];
  assert.deepEqual(
    shown.map(([v, u]) => plain(withUnit(v, u))),
    ["12.3 ms", "12.3 s", "900 MB", "24.6 GB", "42.1/s", "31 %", "1.50 cores", "3"],
  );
});

test("shares under ten percent keep a digit", () => {
  assert.deepEqual([0, 0.0123, 0.0994, 0.0996, 0.5, 1].map(percent), ["0", "1.2", "9.9", "10", "50", "100"]);
});

test("times read as people say them", () => {
  assert.deepEqual([0, 42.9, 185, 7620, 90000].map(duration).map(plain), [
    "0 s", "42 s", "3 min 05 s", "2 h 07 min", "1 d 1 h",
  ]);
  assert.equal(plain(age(1.234)), "1.2 s");
  assert.equal(plain(age(-0.2)), "0.0 s");
  assert.equal(plain(age(75)), "1 min 15 s");
});

test("counts are whole and grouped", () => {
  assert.equal(plain(count(1234567.4)), "1 234 567");
});

test("a value that the hub has worded gets its unit, bound to it", () => {
  assert.equal(joined("12.4", "ms"), "12.4\u202fms");
  assert.equal(joined("31", "%"), "31\u202f%");
  assert.equal(joined("20.5", "/s"), "20.5/s");
  assert.equal(joined("7", ""), "7");
});
