import assert from "node:assert/strict";
import { test } from "node:test";

import { ackPacket, connectPacket, disconnectPacket, eventPacket, parse } from "../../../static/net/packets.js";

const LIVE = "/live";

test("what is sent is what Socket.IO v5 prescribes", () => {
  assert.equal(connectPacket(LIVE), "40/live,");
  assert.equal(disconnectPacket(LIVE), "41/live,");
  assert.equal(eventPacket(LIVE, "watch", { run: "a" }), '42/live,["watch",{"run":"a"}]');
  assert.equal(eventPacket(LIVE, "watch", { run: "a" }, 7), '42/live,7["watch",{"run":"a"}]');
  assert.equal(ackPacket(LIVE, 12), "43/live,12[]");
});

test("an event comes with its arguments and the number of the acknowledgement it wants", () => {
  assert.deepEqual(parse('42/live,31["update",{"seq":4}]', LIVE), {
    type: "event", name: "update", args: [{ seq: 4 }], id: 31,
  });
  assert.deepEqual(parse('42/live,["update",{"seq":4}]', LIVE), {
    type: "event", name: "update", args: [{ seq: 4 }], id: null,
  });
});

test("the handshake, pings, acknowledgements and refusals are told apart", () => {
  assert.deepEqual(parse('0{"sid":"x","pingInterval":25000,"pingTimeout":20000}', LIVE).settings.pingTimeout, 20000);
  assert.equal(parse("2", LIVE).type, "ping");
  assert.equal(parse("2probe", LIVE).type, "ping");
  assert.equal(parse("6", LIVE).type, "noop");
  assert.equal(parse("1", LIVE).type, "close");
  assert.equal(parse('40/live,{"sid":"y"}', LIVE).type, "connect");
  assert.equal(parse("41/live,", LIVE).type, "disconnect");
  assert.deepEqual(parse('43/live,5[{"ok":true}]', LIVE), { type: "ack", id: 5, args: [{ ok: true }] });
  assert.deepEqual(parse('44/live,{"message":"no"}', LIVE), { type: "error", data: { message: "no" } });
});

test("packets of other namespaces are not ours", () => {
  assert.equal(parse('42/ingest,["update",{}]', LIVE).type, "unknown");
  assert.equal(parse('42["update",{}]', LIVE).type, "unknown");
  assert.equal(parse('42["update",{}]', "/").type, "event");
});

test("hostile and broken messages are unknown, and never an exception", () => {
  const hostile = [
    "",
    "0",
    "0null",
    '0{"pingInterval":"soon"}',
    "4",
    "49/live,",
    "42/live,",
    "42/live,[",
    "42/live,{}",
    "42/live,[3]",
    "42/live,[]",
    "43/live,[]",
    "43/live,9{}",
    '42/live,99999999999999999999["x"]',
    "7",
    "b4AAAA",
    "\u0000",
    "42/live",
    "45/live,1-[]",
    `42/${"x".repeat(5000)},["update"]`,
    '42/live,["a"',
    '42/live,"text"',
    "44",
    null,
    undefined,
    5,
    {},
    new ArrayBuffer(4),
  ];
  for (const message of hostile) assert.equal(parse(message, LIVE).type, "unknown", String(message).slice(0, 40));
});

test("a message longer than any the hub sends is not even looked at", () => {
  const bomb = `42/live,["update","${"x".repeat(17 * 1024 * 1024)}"]`;
  assert.equal(parse(bomb, LIVE).type, "unknown");
});

test("deep nesting does not break the page", () => {
  const deep = `42/live,["update",${"[".repeat(200_000)}${"]".repeat(200_000)}]`;
  assert.doesNotThrow(() => parse(deep, LIVE));
});

test("a key called __proto__ changes nothing but its own object", () => {
  parse('42/live,["update",{"__proto__":{"polluted":true}}]', LIVE);
  assert.equal({}.polluted, undefined);
});

test("any text survives the way out and back", () => {
  for (const text of ['","', "\u2028", "],[", "<script>", "\\", "🎉", "42/live,"]) {
    assert.deepEqual(parse(eventPacket(LIVE, "x", { text }, 1), LIVE).args, [{ text }]);
  }
});

test("every cut of a valid message is either understood or unknown", () => {
  const whole = '42/live,31["update",{"seq":4,"rows":{"run":{"t_s":[1,2]}}}]';
  for (let end = 0; end < whole.length; end += 1) assert.equal(parse(whole.slice(0, end), LIVE).type, "unknown");
});
