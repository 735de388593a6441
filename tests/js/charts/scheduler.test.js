import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Scheduler } from "../../../static/charts/scheduler.js";

let frames;
let seen;

/** A page whose frames a test runs, at the times it says. */
beforeEach(() => {
  frames = [];
  globalThis.document = Object.assign(new EventTarget(), { hidden: false });
  globalThis.requestAnimationFrame = (draw) => frames.push(draw);
  globalThis.cancelAnimationFrame = () => {};
  globalThis.IntersectionObserver = class {
    constructor(callback) { seen = (...names) => callback(names.map((target) => ({ target, isIntersecting: true }))); }
    observe() {}
    unobserve() {}
    disconnect() {}
  };
});

function playing(...names) {
  const [scheduler, drawn] = [new Scheduler(), []];
  scheduler.connect();
  for (const name of names) scheduler.add(name, (asked) => drawn.push(asked ? `${name}!` : name));
  return { scheduler, drawn };
}

const frame = (nowMs) => frames.splice(0).forEach((draw) => draw(nowMs));

test("a frame draws one thing, and only what is on screen", () => {
  const { scheduler, drawn } = playing("a", "b", "far");
  seen("a", "b");
  frame(0);
  assert.deepEqual(drawn, ["a!"]);
  frame(16);
  frame(32);
  assert.deepEqual(drawn, ["a!", "b!"]);
  scheduler.disconnect();
});

test("where drawing is slower than data comes, everything has its turn", () => {
  const { scheduler, drawn } = playing("a", "b", "c");
  seen("a", "b", "c");
  for (let nowMs = 0; nowMs < 6 * 500; nowMs += 500) {
    frame(nowMs);
    scheduler.invalidate();
  }
  assert.deepEqual(drawn.map((name) => name[0]), ["a", "b", "c", "a", "b", "c"]);
  scheduler.disconnect();
});

test("what the viewer asked for comes before what only has new data", () => {
  const { scheduler, drawn } = playing("a", "b");
  seen("a", "b");
  frame(0);
  frame(16);
  drawn.length = 0;
  scheduler.invalidate();
  scheduler.ask("b");
  frame(1_000);
  frame(1_016);
  assert.deepEqual(drawn, ["b!", "a"]);
  scheduler.disconnect();
});

test("nothing is drawn in a hidden tab, nor beneath a finger that drags", () => {
  const { scheduler, drawn } = playing("a");
  document.hidden = true;
  seen("a");
  assert.equal(frames.length, 0);
  document.hidden = false;
  scheduler.hold(true);
  assert.equal(frames.length, 0);
  scheduler.hold(false);
  frame(0);
  assert.deepEqual(drawn, ["a!"]);
  scheduler.disconnect();
});
