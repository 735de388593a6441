import assert from "node:assert/strict";
import { test } from "node:test";

import { Marks, overlaps, Selection, sharesOf } from "../../../static/charts/selection.js";
import { TimeRange } from "../../../static/charts/range.js";

const one = { id: "stall/data", code: "stall", cause: "data", ranks: [0], severity: "critical", last_step: 3 };
const other = { id: "stall/comm", code: "stall", cause: "comm", ranks: [1], severity: "critical" };

function listening(selection) {
  const told = [];
  selection.connect((finding) => told.push(finding));
  return told;
}

test("one finding is selected at a time, and a second press lets go of it", () => {
  const selection = new Selection();
  const told = listening(selection);
  selection.toggle(one);
  assert.ok(selection.has({ ...one, last_step: 99 }) && !selection.has(other));
  selection.toggle(other);
  selection.toggle(other);
  assert.deepEqual(told, [one, other, null]);
});

test("the selected finding is renewed with every update, and gone with it", () => {
  const selection = new Selection();
  const told = listening(selection);
  selection.toggle(one);
  selection.update([{ ...one, last_step: 9 }, other]);
  assert.equal(selection.finding.last_step, 9);
  selection.update([other]);
  assert.deepEqual([selection.finding, told.at(-1)], [null, null]);
});

test("a finding that the address names is selected as soon as it is there, once", () => {
  const selection = new Selection("stall");
  selection.update([]);
  assert.equal(selection.finding, null);
  selection.update([one]);
  assert.equal(selection.finding, one);
  selection.clear();
  selection.update([one]);
  assert.equal(selection.finding, null);
});

test("a span lies in the range as shares of its width, cut at its edges", () => {
  assert.deepEqual(sharesOf([25, 50], [0, 100]), [0.25, 0.5]);
  assert.deepEqual(sharesOf([-5, 500], [0, 100]), [0, 1]);
  assert.equal(sharesOf([101, 120], [0, 100]), null);
  assert.equal(sharesOf([1, 2], [5, 5]), null);
});

test("spans that touch have something in common", () => {
  assert.ok(overlaps([0, 10], [10, 20]) && overlaps([12, 13], [0, 100]));
  assert.ok(!overlaps([0, 9], [10, 20]) && !overlaps([21, 30], [10, 20]));
});

test("the band moves with the range, and nothing is marked where nothing is selected", () => {
  const classes = new Set();
  const style = {};
  const grid = {
    dataset: {}, style: { setProperty: (name, value) => { style[name] = value; } },
    classList: { toggle: (name, on) => (on ? classes.add(name) : classes.delete(name)) },
  };
  const [range, selection] = [new TimeRange(), new Selection()];
  const marks = new Marks(grid, range, selection, () => [20, 40]);
  marks.connect();
  range.hold(0, 100);
  assert.ok(!classes.has("marked"));
  selection.toggle(one);
  assert.deepEqual([grid.dataset.mark, style["--mark-from"], style["--mark-to"]], ["critical", "0.2000", "0.4000"]);
  range.hold(0, 40);
  assert.deepEqual([style["--mark-from"], style["--mark-to"]], ["0.5000", "1.0000"]);
  range.hold(60, 90);
  assert.ok(!classes.has("marked"));
  marks.disconnect();
  range.hold(0, 100);
  assert.ok(!classes.has("marked"));
});
