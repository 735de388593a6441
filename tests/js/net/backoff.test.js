import assert from "node:assert/strict";
import { test } from "node:test";

import { waitMs } from "../../../static/net/socket.js";

const middle = () => 0.5;

test("waits double from under half a second to ten seconds and no further", () => {
  assert.deepEqual([0, 1, 2, 3].map((tries) => waitMs(tries, middle)), [400, 800, 1600, 3200]);
  assert.equal(waitMs(9, middle), 10_000);
  assert.equal(waitMs(1_000_000, middle), 10_000);
});

test("tabs that lost the hub together do not all come back together", () => {
  assert.equal(waitMs(0, () => 0), 300);
  assert.equal(waitMs(0, () => 1), 500);
});
