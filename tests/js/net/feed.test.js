import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { Feed, POLL_MS } from "../../../static/net/feed.js";
import { FakeWebSocket, install } from "../browser.js";

let heard;
let asked;
let answer;

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  install();
  [heard, asked] = [[], 0];
  answer = () => ({ run: "r", seq: asked });
  globalThis.fetch = async () => {
    asked += 1;
    const body = answer();
    if (body === null) throw new TypeError("no answer");
    return { ok: true, json: async () => body, headers: { get: () => null } };
  };
});

const settle = () => new Promise((resolve) => setImmediate(resolve));
const wire = () => FakeWebSocket.all.at(-1);

async function feed() {
  const made = new Feed("r", {
    snapshot: () => {}, gap: () => heard.push("gap"), failure: () => {},
    update: ({ seq }) => heard.push(seq), connection: ({ state }) => heard.push(state),
  });
  made.connect();
  await settle();
  return made;
}

async function refuse(times) {
  for (let i = 0; i < times; i++) {
    wire().hubDrops();
    await settle();
    mock.timers.tick(60_000);
    await settle();
  }
}

test("a channel that never opens is replaced by asking, and the page is told so", async () => {
  const made = await feed();
  await refuse(2);
  assert.ok(heard.includes("polling"));
  const before = asked;
  mock.timers.tick(POLL_MS);
  await settle();
  assert.equal(asked, before + 1);
  assert.equal(heard.filter(Number.isFinite).at(-1), asked);
  made.disconnect();
});

test("one failed try is nobody's business", async () => {
  const made = await feed();
  wire().hubDrops();
  await settle();
  assert.equal(asked, 1);
  assert.ok(!heard.includes("polling"));
  made.disconnect();
});

test("a channel that was open and is lost is waited for, not replaced", async () => {
  const made = await feed();
  wire().hubSays('0{"sid":"a","pingInterval":25000,"pingTimeout":20000}');
  wire().hubSays('40/live,{"sid":"b"}');
  await refuse(4);
  assert.equal(asked, 1);
  assert.equal(heard.at(-1), "connecting");
  made.disconnect();
});

test("asking ends when the channel opens after all", async () => {
  const made = await feed();
  await refuse(2);
  wire().hubSays('0{"sid":"a","pingInterval":25000,"pingTimeout":20000}');
  wire().hubSays('40/live,{"sid":"b"}');
  const before = asked;
  mock.timers.tick(3 * POLL_MS);
  await settle();
  assert.equal(asked, before);
  assert.equal(heard.at(-1), "open");
  made.disconnect();
});

test("a hub that does not answer either is no connection", async () => {
  const made = await feed();
  answer = () => null;
  await refuse(3);
  assert.ok(!heard.includes("polling"));
  assert.equal(heard.at(-1), "waiting");
  made.disconnect();
});

test("a hidden tab asks nothing, and a closed view nothing more", async () => {
  const made = await feed();
  await refuse(2);
  let before = asked;
  document.hidden = true;
  mock.timers.tick(POLL_MS);
  await settle();
  assert.equal(asked, before);
  document.hidden = false;
  made.disconnect();
  before = asked;
  mock.timers.tick(POLL_MS);
  await settle();
  assert.equal(asked, before);
});
