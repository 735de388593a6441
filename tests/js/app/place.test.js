import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

import { Place, placeOf, toPlace } from "../../../static/app/route.js";
import { TimeRange } from "../../../static/charts/range.js";
import { Selection } from "../../../static/charts/selection.js";

const FOUND = { code: "data_starvation", cause: "num_workers=0", ranks: [0] };

beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
afterEach(() => {
  mock.timers.reset();
  delete globalThis.history;
});

test("an address leads back to the same range and finding", () => {
  const hash = toPlace("a b", { range: [10, 60.126], finding: "stall" });
  assert.equal(hash, "#/run/a%20b?from=10&to=60.13&finding=stall");
  assert.deepEqual(placeOf(hash), { range: [10, 60.13], span: null, finding: "stall" });
  assert.deepEqual(placeOf(toPlace("r", { span: 900 })), { range: null, span: 900, finding: null });
});

test("whoever follows the whole run has the plain address", () => {
  assert.equal(toPlace("r", { span: Infinity }), "#/run/r");
  assert.deepEqual(placeOf("#/run/r"), { range: null, span: null, finding: null });
});

test("nonsense in an address is left alone", () => {
  for (const query of [
    "from=5", "from=9&to=3", "from=x&to=y", "from=-1&to=3", "from=1&to=Infinity", "from=&to=", "last=-2", "last=x",
  ]) {
    assert.deepEqual(placeOf(`#/run/r?${query}`), { range: null, span: null, finding: null }, query);
  }
  assert.equal(placeOf(`#/run/r?finding=${"x".repeat(500)}`).finding.length, 64);
});

test("the address follows the viewer, a little later and once", () => {
  const written = [];
  globalThis.history = { replaceState: (_, __, hash) => written.push(hash) };
  const [range, selection] = [new TimeRange(), new Selection()];
  const place = new Place("r", range, selection);
  place.connect();
  range.hold(1, 5);
  range.hold(2, 6);
  selection.toggle(FOUND);
  mock.timers.tick(300);
  assert.deepEqual(written, ["#/run/r?from=2&to=6&finding=data_starvation"]);
  range.advance(100);
  mock.timers.tick(300);
  assert.equal(written.length, 1);
  selection.clear();
  range.follow();
  mock.timers.tick(300);
  assert.equal(written.at(-1), "#/run/r");
  place.disconnect();
  range.hold(1, 2);
  mock.timers.tick(300);
  assert.equal(written.length, 2);
});
