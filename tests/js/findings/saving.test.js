import assert from "node:assert/strict";
import { test } from "node:test";

import { confidenceOf } from "../../../static/findings/confidence.js";
import { promising, remainingS, savingText } from "../../../static/findings/saving.js";

const starved = {
  code: "data_starvation", severity: "warning", cause: "", gain: { share_of_step: 0.25, speedup: 1.33 },
  cleared_at_s: null,
};
const run = {
  status: "running", steps: 1000, plan_steps: 4000, now_s: 3600, findings: [starved],
  verdict: { key: "finding_gain" },
};

test("time left is what the run's own rate makes of the steps that are left", () => {
  assert.equal(remainingS(run), 10_800);
  assert.equal(remainingS({ ...run, steps: 5000 }), 0);
});

test("without a known number of steps there is no time left, and none is guessed", () => {
  for (const lacking of [
    { plan_steps: null }, { plan_steps: undefined }, { steps: 3 }, { status: "finished" }, { now_s: null },
  ]) {
    assert.equal(remainingS({ ...run, ...lacking }), null);
  }
});

test("the verdict's saving is the gain's share of what is left", () => {
  assert.equal(savingText(run), "That saves 45\u202fmin 00\u202fs of the remaining 3\u202fh 00\u202fmin.");
});

test("where nobody knows what is left, it is what was lost so far", () => {
  assert.equal(
    savingText({ ...run, plan_steps: null }), "It has cost 15\u202fmin 00\u202fs of 1\u202fh 00\u202fmin so far.",
  );
  assert.equal(
    savingText({ ...run, status: "finished" }), "It has cost 15\u202fmin 00\u202fs of 1\u202fh 00\u202fmin so far.",
  );
});

test("no saving without a promise, and none of a moment", () => {
  assert.equal(savingText({ ...run, findings: [{ ...starved, gain: null }] }), "");
  assert.equal(savingText({ ...run, verdict: { key: "healthy" } }), "");
  assert.equal(savingText({ ...run, plan_steps: null, now_s: 30 }), "");
  assert.equal(savingText({}), "");
});

test("the promise is the gravest finding's, as in the verdict", () => {
  const graver = { ...starved, code: "stall", severity: "critical", gain: null };
  assert.equal(promising({ findings: [{ ...starved, cleared_at_s: 4 }] }), null);
  assert.equal(promising({ findings: [starved, graver] }), null);
  assert.equal(promising({ findings: [{ ...starved, severity: "info" }] }), null);
});

test("confidence grows with the steps that were seen, and says how many", () => {
  const over = (steps) => confidenceOf({ first_step: 5, last_step: 4 + steps });
  assert.deepEqual([over(50).level, over(100).level, over(1000).level], ["low", "medium", "high"]);
  assert.equal(over(1000).why, "seen over 1\u202f000 steps");
});

test("a setting or an event is certain", () => {
  assert.equal(confidenceOf({ first_step: null, last_step: null }).level, "certain");
  assert.equal(confidenceOf({ first_step: 7, last_step: 7 }).level, "certain");
});
