import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { StepTimes } from "../../../static/charts/history.js";
import { install } from "../browser.js";

const tick = async (ms) => {
  mock.timers.tick(ms);
  await new Promise((resolve) => setImmediate(resolve));
};
let asked;

beforeEach(() => {
  install();
  asked = [];
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  globalThis.fetch = async (url) => {
    asked.push(`${url.pathname}${decodeURIComponent(url.search)}`);
    const steps = url.searchParams.get("at").split(",");
    return new Response(
      JSON.stringify({
        t_s: Object.fromEntries(steps.map((step) => [step, step === "404" ? null : Number(step) / 10])),
      }),
    );
  };
});

const finding = (first, more = {}) => ({ first_step: first, raised_at_s: 50, cleared_at_s: null, ranks: [0], ...more });

test("a finding spans from its first step to its end, or to now", async () => {
  const times = new StepTimes("r", () => {});
  times.span(finding(200), 90);
  await tick(150);
  assert.deepEqual(times.span(finding(200), 90), [20, 90]);
  assert.deepEqual(times.span(finding(200, { cleared_at_s: 70 }), 90), [20, 70]);
});

test("until the step's time is known, and where there is none, it begins when it was raised", async () => {
  const times = new StepTimes("r", () => {});
  assert.deepEqual(times.span(finding(404), 90), [50, 90]);
  await tick(150);
  assert.deepEqual(times.span(finding(404), 90), [50, 90]);
  assert.deepEqual(times.span(finding(null), 90), [50, 90]);
  assert.deepEqual(times.span({ first_step: null }, 90), [0, 90]);
});

test("steps are asked for together, each once, by rank", async () => {
  let told = 0;
  const times = new StepTimes("r", () => { told += 1; });
  for (const step of [1, 2, 1]) times.span(finding(step), 90);
  times.span(finding(7, { ranks: [3] }), 90);
  await tick(150);
  assert.deepEqual(asked, ["/api/runs/r/times?stream=rank/0&at=1,2", "/api/runs/r/times?stream=rank/3&at=7"]);
  times.span(finding(1), 95);
  await tick(10_000);
  assert.equal(asked.length, 2);
  assert.equal(told, 1);
});

test("a hub that does not answer is asked again later, and nobody after the page is gone", async () => {
  const answer = globalThis.fetch;
  globalThis.fetch = async () => { throw new TypeError("gone"); };
  const times = new StepTimes("r", () => {});
  times.span(finding(1), 90);
  await tick(150);
  globalThis.fetch = answer;
  await tick(5_100);
  assert.equal(asked.length, 1);
  times.span(finding(2), 90);
  times.disconnect();
  await tick(10_000);
  assert.equal(asked.length, 1);
});
