import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { LiveSocket, socketUrl } from "../../../static/net/socket.js";
import { FakeWebSocket, install } from "../browser.js";

let targets;
let states;
let events;

beforeEach(() => {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  targets = install();
  [states, events] = [[], []];
});

function connected(onEvent = (name, args) => { events.push([name, args]); }) {
  const socket = new LiveSocket({
    url: "ws://hub/", namespace: "/live", onEvent, onState: ({ state }) => states.push(state),
  });
  socket.connect();
  welcome();
  return socket;
}

function welcome() {
  const wire = FakeWebSocket.all.at(-1);
  wire.hubSays('0{"sid":"a","pingInterval":25000,"pingTimeout":20000}');
  wire.hubSays('40/live,{"sid":"b"}');
  return wire;
}

const wire = () => FakeWebSocket.all.at(-1);
const settle = () => new Promise((resolve) => setImmediate(resolve));

test("it enters the namespace after the handshake and says that it is open", () => {
  connected();
  assert.deepEqual(wire().sent, ["40/live,"]);
  assert.deepEqual(states, ["connecting", "open"]);
});

test("a ping is answered at once", () => {
  connected();
  wire().hubSays("2");
  assert.equal(wire().sent.at(-1), "3");
});

test("an event is acknowledged once it has been dealt with, not before", async () => {
  let done;
  connected(() => new Promise((resolve) => { done = resolve; }));
  wire().hubSays('42/live,8["update",{}]');
  await settle();
  assert.ok(!wire().sent.includes("43/live,8[]"));
  done();
  await settle();
  assert.equal(wire().sent.at(-1), "43/live,8[]");
});

test("our own event resolves with the hub's answer", async () => {
  const socket = connected();
  const answer = socket.emit("watch", { run: "r" });
  assert.equal(wire().sent.at(-1), '42/live,1["watch",{"run":"r"}]');
  wire().hubSays('43/live,1[{"ok":true}]');
  assert.deepEqual(await answer, [{ ok: true }]);
});

test("an event without an answer is given up, and an answer nobody waits for is ignored", async () => {
  const socket = connected();
  const answer = socket.emit("watch", {});
  mock.timers.tick(10_000);
  await assert.rejects(answer, /no answer/);
  assert.doesNotThrow(() => wire().hubSays("43/live,1[]"));
});

test("no more events wait for answers than a bounded number", async () => {
  const socket = connected();
  const waiting = Array.from({ length: 64 }, () => socket.emit("watch", {}));
  await assert.rejects(socket.emit("watch", {}), /too many/);
  socket.disconnect();
  await Promise.allSettled(waiting);
});

test("a lost connection is tried again, at growing distances", () => {
  connected();
  wire().hubDrops();
  assert.equal(states.at(-1), "waiting");
  mock.timers.tick(600);
  assert.equal(FakeWebSocket.all.length, 2);
  wire().hubDrops();
  mock.timers.tick(550);
  assert.equal(FakeWebSocket.all.length, 2);
  mock.timers.tick(500);
  assert.equal(FakeWebSocket.all.length, 3);
});

test("after a reconnect it enters the namespace anew", () => {
  connected();
  wire().hubDrops();
  mock.timers.tick(600);
  assert.deepEqual(welcome().sent, ["40/live,"]);
  assert.equal(states.at(-1), "open");
});

test("silence longer than the hub promised counts as lost", () => {
  connected();
  mock.timers.tick(45_001);
  assert.equal(states.at(-1), "waiting");
});

test("pings keep a quiet connection alive", () => {
  connected();
  for (let i = 0; i < 5; i += 1) {
    mock.timers.tick(25_000);
    wire().hubSays("2");
  }
  assert.equal(states.at(-1), "open");
});

test("waiting events fail when the line is lost, rather than hang", async () => {
  const socket = connected();
  const answer = socket.emit("watch", {});
  wire().hubDrops();
  await assert.rejects(answer, /connection lost/);
});

test("a refusal is told as one, and tried again", () => {
  connected();
  wire().hubSays('44/live,{"message":"no token"}');
  assert.equal(states.at(-1), "refused");
  mock.timers.tick(600);
  assert.equal(FakeWebSocket.all.length, 2);
});

test("coming back online does not wait for the back-off", () => {
  connected();
  wire().hubDrops();
  targets.window.dispatchEvent(new Event("online"));
  assert.equal(FakeWebSocket.all.length, 2);
});

test("garbage from the wire harms nothing", () => {
  connected();
  for (const garbage of ["", "x", "42/live,[", "4", new ArrayBuffer(8), '42/other,["update"]']) wire().hubSays(garbage);
  assert.deepEqual(events, []);
  assert.equal(states.at(-1), "open");
});

test("a handler that throws still acknowledges, so that the hub goes on", async () => {
  globalThis.reportError = mock.fn();
  connected(() => { throw new Error("drawing failed"); });
  wire().hubSays('42/live,9["update",{}]');
  await settle();
  assert.equal(wire().sent.at(-1), "43/live,9[]");
  assert.match(globalThis.reportError.mock.calls[0].arguments[0].message, /drawing failed/);
});

test("disconnect leaves the namespace, all listeners and all timers behind", () => {
  const socket = connected();
  const old = wire();
  socket.disconnect();
  assert.equal(old.sent.at(-1), "41/live,");
  assert.equal(targets.window.listeners + targets.document.listeners, 0);
  mock.timers.tick(120_000);
  assert.equal(FakeWebSocket.all.length, 1);
  assert.equal(states.at(-1), "closed");
});

test("an old connection's last words do not disturb the new one", () => {
  connected();
  const old = wire();
  old.hubDrops();
  mock.timers.tick(600);
  welcome();
  old.hubSays('42/live,["update",{}]');
  old.hubDrops();
  assert.deepEqual(events, []);
  assert.equal(states.at(-1), "open");
});

test("the address follows the page's, below any prefix and over TLS", () => {
  assert.equal(socketUrl("http://a:7007/"), "ws://a:7007/socket.io/?EIO=4&transport=websocket");
  assert.equal(socketUrl("https://a/proxy/7007/?x=1#/runs"), "wss://a/proxy/7007/socket.io/?EIO=4&transport=websocket");
});
