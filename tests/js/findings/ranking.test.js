import assert from "node:assert/strict";
import { test } from "node:test";

import { identity, isCleared, ranked, worst } from "../../../static/findings/ranking.js";

const finding = (code, severity, share = null, more = {}) => ({
  code, severity, cause: "c", ranks: [0], raised_at_s: 1, cleared_at_s: null,
  gain: share === null ? null : { share_of_step: share }, ...more,
});
const codes = (findings) => ranked(findings).map(({ code }) => code);

test("severity comes first", () => {
  assert.deepEqual(codes([finding("i", "info", 0.9), finding("w", "warning", 0.1), finding("c", "critical")]), [
    "c", "w", "i",
  ]);
});

test("within a severity the larger saving comes first, unknown savings last", () => {
  assert.deepEqual(
    codes([finding("none", "warning"), finding("small", "warning", 0.1), finding("big", "warning", 0.4)]),
    ["big", "small", "none"],
  );
});

test("what is over comes after everything that is not", () => {
  assert.deepEqual(codes([finding("over", "critical", 0.9, { cleared_at_s: 5 }), finding("now", "info")]), [
    "now", "over",
  ]);
});

test("equal findings keep a fixed order, so that the list does not jump", () => {
  const [a, b] = [finding("a", "info"), finding("b", "info")];
  assert.deepEqual(codes([a, b]), codes([b, a]));
});

test("the list that came in is left alone", () => {
  const findings = [finding("i", "info"), finding("c", "critical")];
  ranked(findings);
  assert.equal(findings[0].code, "i");
});

test("a severity that this page does not know ranks last and breaks nothing", () => {
  assert.deepEqual(codes([finding("x", "apocalyptic"), finding("i", "info")]), ["i", "x"]);
});

test("the worst counts only what is active", () => {
  assert.equal(worst([finding("c", "critical", null, { cleared_at_s: 3 }), finding("i", "info")]), "info");
  assert.equal(worst([]), null);
});

test("a finding cleared at zero seconds is cleared", () => {
  assert.equal(isCleared({ cleared_at_s: 0 }), true);
  assert.equal(isCleared({}), false);
});

test("code, cause and ranks make a finding the same one", () => {
  assert.equal(identity(finding("a", "info")), identity(finding("a", "critical", 0.5)));
  assert.notEqual(identity(finding("a", "info")), identity(finding("a", "info", null, { ranks: [1] })));
});
