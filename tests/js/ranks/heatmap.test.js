import assert from "node:assert/strict";
import { test } from "node:test";

import {
  columnAt, FRAME, geometry, ordered, pixels, rowHeight, scaleOf, waitColour,
} from "../../../static/ranks/heatmapcells.js";
import { runs } from "../../../static/ranks/heatmappaint.js";
import { Hand } from "../../../static/ranks/heatmaphand.js";
import { phasesIn } from "../../../static/ranks/look.js";
import { MARGIN } from "../../../static/charts/chart.js";

const PHASES = ["data", "forward", "comm"];
const ranks = [5, 2, 9].map((rank) => ({ rank }));
const light = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;

test("times stand exactly below those of the charts", () => {
  assert.deepEqual(FRAME, MARGIN);
});

test("a few ranks have high rows, and a thousand still fit on a page", () => {
  assert.ok(rowHeight(2) >= 16);
  for (const rows of [16, 64, 256, 512, 1024]) assert.ok(rowHeight(rows) * rows <= 1024, String(rows));
  assert.equal(rowHeight(1024), 1);
});

test("a point finds its row and time, and outside of the cells finds none", () => {
  const place = geometry({ rows: 4, width: 1062, from: 100, to: 200 });
  assert.equal(place.rowAt(place.y(2) + 1), 2);
  assert.equal(place.rowAt(FRAME.t - 1), null);
  assert.equal(place.rowAt(FRAME.t + place.high), null);
  assert.equal(place.timeAt(place.x(150)), 150);
  assert.equal(place.timeAt(FRAME.l - 1), null);
  assert.equal(place.timeAt(FRAME.l + place.wide + 1), null);
});

test("a time finds its column, and none in a gap or beyond the ends", () => {
  const t = [1, 3, 5, 11];
  assert.deepEqual([0, 1.9, 4, 5.9, 11].map((time) => columnAt(t, 2, time)), [0, 0, 2, 2, 3]);
  for (const time of [-0.1, 6, 9, 12.1]) assert.equal(columnAt(t, 2, time), null, String(time));
  assert.equal(columnAt([], 2, 1), null);
});

test("rows stand worst first as the hub sends them, or by number", () => {
  assert.deepEqual(ordered(ranks, "worst"), [0, 1, 2]);
  assert.deepEqual(ordered(ranks, "number").map((row) => ranks[row].rank), [2, 5, 9]);
});

test("a single peak does not wash out the scale", () => {
  const matrix = [Array.from({ length: 200 }, (_, i) => (i === 7 ? 9_000 : i % 10)), new Array(200).fill(null)];
  assert.equal(scaleOf(matrix), 9);
  assert.equal(scaleOf([[null, null]]), 0);
  assert.equal(scaleOf([]), 0);
});

test("the scale of a thousand ranks is found from a sample", () => {
  const matrix = Array.from({ length: 1024 }, (_, rank) => new Array(120).fill(rank / 1024));
  assert.ok(scaleOf(matrix) > 0.9 && scaleOf(matrix) <= 1);
});

test("a longer wait differs from a shorter one in lightness, so that no eye needs the hue", () => {
  for (const [theme, sign] of [["light", -1], ["dark", 1]]) {
    const steps = [0, 0.25, 0.5, 0.75, 1].map((share) => light(waitColour(share, theme)) * sign);
    for (let i = 1; i < steps.length; i += 1) assert.ok(steps[i] - steps[i - 1] > 15, `${theme} ${i}`);
  }
});

test("a wait beyond the scale has its last colour", () => {
  assert.deepEqual(waitColour(3, "light"), waitColour(1, "light"));
  assert.deepEqual(waitColour(-1, "light"), waitColour(0, "light"));
});

test("cells are painted in the ribbon's colours, and what was not measured stays clear", () => {
  const bytes = pixels({
    matrix: [
      [0, null], [2, 1],
    ],
    rows: [1, 0],
    columns: 2,
    mode: "phase",
    phases: PHASES,
    scale: 0,
    theme: "light",
  });
  assert.deepEqual([...bytes.slice(0, 3)], [204, 121, 167]);
  assert.deepEqual([...bytes.slice(4, 7)], [86, 180, 233]);
  assert.deepEqual([...bytes.slice(8, 11)], [230, 159, 0]);
  assert.equal(bytes[15], 0);
});

test("a phase that this page does not know, and a row that did not come, stay clear", () => {
  const bytes = pixels({
    matrix: [[9]], rows: [0, 1], columns: 1, mode: "phase", phases: PHASES, scale: 0, theme: "dark",
  });
  assert.deepEqual([...bytes], [0, 0, 0, 0, 0, 0, 0, 0]);
});

test("waits are painted on their scale, also where nobody waited", () => {
  const paint = (scale) => [
    ...pixels({ matrix: [[0, 5, 10]], rows: [0], columns: 3, mode: "wait", phases: PHASES, scale, theme: "light" }),
  ];
  assert.deepEqual(paint(10).slice(8, 11), waitColour(1, "light"));
  assert.deepEqual(paint(10).slice(0, 3), waitColour(0, "light"));
  assert.deepEqual(paint(0).slice(8, 11), waitColour(0, "light"));
});

test("columns that follow one another are stretched in one go, a gap stays a gap", () => {
  assert.deepEqual(runs([1, 2, 3, 7, 8], 1), [[0, 2], [3, 4]]);
  assert.deepEqual(runs([], 1), []);
});

test("the legend names the phases that are there, in the schema's order", () => {
  assert.deepEqual(phasesIn({ cells: { phase: [[2, null], [0, 2]] }, phases: PHASES }), ["data", "comm"]);
  assert.deepEqual(phasesIn({ cells: {}, phases: PHASES }), []);
});

class Field extends EventTarget {
  style = {};
  blur() {
    this.dispatchEvent(new Event("blur"));
  }
  getBoundingClientRect() {
    return { left: 0, top: 0 };
  }
}

function hand({ rows = 3, t = [5, 15, 25] } = {}) {
  const [field, said] = [new Field(), []];
  const place = geometry({ rows, width: 362, from: 0, to: 30 });
  const tell = (name) => (...args) => said.push([name, ...args]);
  const on = {
    place: () => place, columns: () => t, bounds: () => [0, 30], pointed: tell("pointed"), chosen: tell("chosen"),
    dragged: tell("dragged"), reset: tell("reset"), moved: tell("moved"),
  };
  const held = new Hand(field, on);
  held.connect();
  const fire = (name, fields) =>
    field.dispatchEvent(Object.assign(new Event(name, { cancelable: true, bubbles: true }), fields));
  const at = (row, time) => ({ clientX: place.x(time), clientY: place.y(row) + 2, button: 0, pointerType: "mouse" });
  return { held, said, fire, at, last: (name) => said.filter(([what]) => what === name).at(-1)?.slice(1) };
}

const press = (fire, ...keys) => keys.forEach((key) => fire("keydown", { key }));

test("the first key stands on the newest cell of the top row, arrows move from there and stop at the edges", () => {
  const { held, fire } = hand();
  press(fire, "ArrowDown");
  assert.deepEqual(held.cursor, { row: 0, column: 2 });
  press(fire, "ArrowDown", "ArrowLeft");
  assert.deepEqual(held.cursor, { row: 1, column: 1 });
  press(fire, "PageDown", "Home", "ArrowLeft");
  assert.deepEqual(held.cursor, { row: 2, column: 0 });
});

test("Enter picks the row of the cursor, Escape takes the cursor away", () => {
  const { held, fire, last } = hand();
  press(fire, "Enter", "ArrowDown", "Enter");
  assert.deepEqual(last("chosen"), [1]);
  press(fire, "Escape");
  assert.equal(held.cursor, null);
  assert.deepEqual(last("pointed"), [null]);
});

test("keys that mean nothing here go on to the page", () => {
  const { fire } = hand();
  assert.equal(fire("keydown", { key: "t" }), true);
  assert.equal(fire("keydown", { key: "ArrowUp" }), false);
  assert.equal(fire("keydown", { key: "ArrowUp", ctrlKey: true }), true);
});

test("a click picks a row, a drag a stretch of time, a double click the newest data", () => {
  const { fire, at, last } = hand();
  fire("pointerdown", at(1, 10));
  fire("pointerup", at(1, 10));
  assert.deepEqual(last("chosen"), [1]);
  fire("pointerdown", at(1, 20));
  fire("pointerup", at(2, 10));
  assert.deepEqual(last("dragged").map(Math.round), [10, 20]);
  fire("dblclick", {});
  assert.equal(last("reset").length, 1);
});

test("a finger that scrolls over the map picks nothing", () => {
  const { fire, at, last } = hand();
  fire("pointerdown", { ...at(0, 10), pointerType: "touch" });
  fire("pointerup", { ...at(2, 20), pointerType: "touch" });
  assert.equal(last("chosen"), undefined);
  assert.equal(last("dragged"), undefined);
});

test("the pointer tells its cell, and nothing beside the cells", () => {
  const { fire, at, last } = hand();
  fire("pointermove", at(2, 10));
  assert.equal(last("pointed")[0].row, 2);
  fire("pointermove", { clientX: 3, clientY: 3 });
  assert.deepEqual(last("pointed"), [null]);
});

test("no key does anything while there are no cells", () => {
  const { held, fire } = hand({ rows: 0, t: [] });
  press(fire, "ArrowDown", "Enter");
  assert.equal(held.cursor, null);
});

test("what was connected is disconnected", () => {
  const { held, fire, said } = hand();
  held.disconnect();
  press(fire, "Enter");
  assert.deepEqual(said, []);
});
