import assert from "node:assert/strict";
import { test } from "node:test";

import { HubClock } from "../../../static/app/strip.js";
import { parse, toRun } from "../../../static/app/route.js";
import { isLive, statusOf, tabOf } from "../../../static/app/status.js";

const update = { status: "running", name: "digits", tiles: { steps_per_s: 42.13 }, findings: [] };
const found = (severity) => [{ code: "x", severity, cause: "", cleared_at_s: null }];

test("addresses lead to a run, the list, or home", () => {
  assert.deepEqual(parse("#/run/20261130-digits-a1b2"), { view: "run", run: "20261130-digits-a1b2" });
  assert.deepEqual(parse("#/runs"), { view: "runs" });
  for (const hash of ["", "#", "#/", "#/run/", "#/other", "#javascript:alert(1)"])
    assert.equal(parse(hash).view, "home");
});

test("any run id survives the way through the address", () => {
  for (const id of ["a b", "50%", "ü/ö", "<script>", "#/runs"])
    assert.deepEqual(parse(toRun(id)), { view: "run", run: id });
  assert.deepEqual(parse("#/run/%E0%A4%A"), { view: "run", run: "%E0%A4%A" });
});

test("the tab tells speed and name", () => {
  assert.deepEqual(tabOf(update), { title: "● 42.1 it/s – digits", icon: "favicon.svg" });
});

test("the tab warns, and a critical finding is louder", () => {
  assert.deepEqual(tabOf({ ...update, findings: found("warning") }).icon, "favicon-warn.svg");
  const critical = tabOf({ ...update, findings: found("critical") });
  assert.equal(critical.icon, "favicon-bad.svg");
  assert.match(critical.title, /^✕ 42.1 it\/s/);
  assert.equal(tabOf({ ...update, findings: found("info") }).icon, "favicon.svg");
});

test("a run that is over is named by its end, and advice does not colour it", () => {
  assert.equal(tabOf({ ...update, status: "killed" }).title, "✕ killed – digits");
  assert.equal(tabOf({ ...update, status: "finished", findings: found("warning") }).title, "✓ finished – digits");
});

test("a run without numbers yet has a title all the same", () => {
  assert.equal(tabOf({ status: "running", run: "id" }).title, "● running – id");
});

test("a status from the future is shown as it came", () => {
  assert.deepEqual(statusOf("hibernating"), { word: "hibernating", tone: "unknown" });
  assert.equal(isLive("finished"), false);
});

test("data age is unknown until both clocks are", () => {
  const clock = new HubClock(() => 1000);
  assert.equal(clock.age(990), null);
  clock.note(1000);
  assert.equal(clock.age(null), null);
  assert.equal(clock.age(990), 10);
});

test("data age is right although the clocks differ by hours", () => {
  let now = 1000;
  const clock = new HubClock(() => now);
  clock.note(8000);
  now = 1003;
  assert.equal(clock.age(8000), 3);
});

test("slow messages do not make the hub's clock run late", () => {
  let now = 100;
  const clock = new HubClock(() => now);
  clock.note(100);
  now = 110;
  clock.note(104);
  assert.equal(clock.age(104), 6);
});

test("data from the hub's future is zero seconds old", () => {
  const clock = new HubClock(() => 100);
  clock.note(100);
  assert.equal(clock.age(101), 0);
});
