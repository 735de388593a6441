/** A small Socket.IO client: WebSocket only, one namespace, reconnect with back-off, acks both ways. */

import { ackPacket, connectPacket, disconnectPacket, eventPacket, parse, PONG } from "./packets.js";

const FIRST_MS = 400;
const LONGEST_MS = 10_000;
const SPREAD = 0.25; // share of the wait that is random, either way

/** Waiting time in ms before try number `tries` (from 0). `random` gives 0 to 1. */
export function waitMs(tries, random = Math.random) {
  const base = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(tries, 10));
  return Math.round(base * (1 + SPREAD * (2 * random() - 1)));
}

const MAX_PENDING = 64; // own events that wait for an ack
const ACK_TIMEOUT_MS = 10_000;
const OPEN_TIMEOUT_MS = 10_000;

export class LiveSocket {
  #url;
  #namespace;
  #onEvent;
  #onState;
  #socket = null;
  #tries = 0;
  #timer = null;
  #watchdog = null;
  #graceMs = OPEN_TIMEOUT_MS;
  #nextId = 1;
  #pending = new Map();

  /**
   * `onEvent(name, args)` may return a promise: the hub's ack goes out when it is done.
   * `onState({state, retryAtMs, reason})`: state "connecting", "open", "waiting", "refused" or "closed".
   */
  constructor({ url, namespace, onEvent, onState }) {
    this.#url = url;
    this.#namespace = namespace;
    this.#onEvent = onEvent;
    this.#onState = onState;
  }

  connect() {
    window.addEventListener("online", this.#retry);
    document.addEventListener("visibilitychange", this.#retry);
    this.#open();
  }

  disconnect() {
    window.removeEventListener("online", this.#retry);
    document.removeEventListener("visibilitychange", this.#retry);
    clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(disconnectPacket(this.#namespace));
    this.#drop();
    this.#onState({ state: "closed" });
  }

  /** Send an event; resolves with the hub's ack arguments, rejects when none comes. */
  emit(name, data) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return Promise.reject(new Error("not connected"));
    if (this.#pending.size >= MAX_PENDING) return Promise.reject(new Error("too many unanswered events"));
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#settle(id, "reject", new Error("no answer")), ACK_TIMEOUT_MS);
      this.#pending.set(id, { resolve, reject, timer });
      this.#socket.send(eventPacket(this.#namespace, name, data, id));
    });
  }

  #retry = () => {
    if (this.#timer === null || document.hidden) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#open();
  };

  #open() {
    this.#onState({ state: "connecting" });
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    this.#graceMs = OPEN_TIMEOUT_MS;
    this.#watch();
    socket.addEventListener("message", (message) => socket === this.#socket && this.#take(message.data));
    socket.addEventListener("close", () => socket === this.#socket && this.#lost("connection closed"));
  }

  #take(data) {
    this.#watch();
    const packet = parse(data, this.#namespace);
    if (packet.type === "open") {
      this.#graceMs = packet.settings.pingInterval + packet.settings.pingTimeout;
      this.#socket.send(connectPacket(this.#namespace));
    } else if (packet.type === "ping") this.#socket.send(PONG);
    else if (packet.type === "connect") this.#entered();
    else if (packet.type === "event") this.#handle(packet);
    else if (packet.type === "ack") this.#settle(packet.id, "resolve", packet.args);
    else if (packet.type === "error") this.#lost(String(packet.data?.message ?? "refused"), "refused");
    else if (packet.type === "close" || packet.type === "disconnect") this.#lost("closed by the hub");
  }

  #entered() {
    this.#tries = 0;
    this.#onState({ state: "open" });
  }

  async #handle(packet) {
    const socket = this.#socket;
    try {
      await this.#onEvent(packet.name, packet.args);
    } catch (error) {
      reportError(error); // a drawing that failed must not keep the hub from sending the next
    }
    const current = socket === this.#socket && socket.readyState === WebSocket.OPEN;
    if (packet.id !== null && current) socket.send(ackPacket(this.#namespace, packet.id));
  }

  #settle(id, outcome, value) {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    clearTimeout(pending.timer);
    pending[outcome](value);
  }

  // The hub pings; silence for longer than it promised means that the line is dead though it looks open.
  #watch() {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => this.#lost("no sign of life"), this.#graceMs);
  }

  #lost(reason, state = "waiting") {
    this.#drop();
    const wait = waitMs(this.#tries++);
    this.#onState({ state, reason, retryAtMs: performance.now() + wait });
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#open();
    }, wait);
  }

  #drop() {
    clearTimeout(this.#watchdog);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    for (const id of [...this.#pending.keys()]) this.#settle(id, "reject", new Error("connection lost"));
  }
}

/** The hub's Socket.IO address, beside the page whatever its prefix. */
export function socketUrl(base = document.baseURI) {
  const url = new URL("socket.io/?EIO=4&transport=websocket", base);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}
