/**
 * One run as it happens: a snapshot at once, then the hub's updates, and word of every gap. Where no WebSocket
 * comes through at all (Colab's proxy, some companies' proxies), snapshots every few seconds stand in.
 */

import { read, runPath } from "./api.js";
import { LiveSocket, socketUrl } from "./socket.js";

const AGAIN_MS = 2_000; // after a snapshot that failed
const NAMESPACE = "/live";
const TRIES = 2; // of the live channel, before it is asked for instead
export const POLL_MS = 5_000;

export class Feed {
  #run;
  #on;
  #socket;
  #seq = null;
  #abort = new AbortController();
  #timer = null;
  #failed = 0; // tries of a channel that has never opened
  #polls = null;

  /**
   * `on.snapshot(snapshot, hubUnixS)`, `on.update(update)`, `on.gap()` when updates were missed,
   * `on.connection({state, …})` (see socket.js; "polling" too), `on.failure(ApiError)` when there is no such run.
   */
  constructor(run, on) {
    this.#run = run;
    this.#on = on;
    this.#socket = new LiveSocket({
      url: socketUrl(), namespace: NAMESPACE, onEvent: this.#event, onState: this.#state,
    });
  }

  connect() {
    this.#snapshot();
    this.#socket.connect();
  }

  disconnect() {
    this.#abort.abort();
    clearTimeout(this.#timer);
    clearInterval(this.#polls);
    this.#socket.disconnect();
  }

  async #snapshot() {
    try {
      const { body, hubUnixS } = await read(runPath(this.#run), { signal: this.#abort.signal });
      this.#on.snapshot(body, hubUnixS);
      this.#take(body, true);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.#on.failure(error);
      if (error.status === 0 || error.status >= 500) this.#timer = setTimeout(() => this.#snapshot(), AGAIN_MS);
    }
  }

  #state = (connection) => {
    if (connection.state === "open") {
      clearInterval(this.#polls);
      [this.#polls, this.#failed] = [null, -Infinity];
      this.#socket.emit("watch", { run: this.#run }).catch(() => {});
    } else if (connection.state === "waiting" && ++this.#failed >= TRIES && this.#polls === null) this.#poll();
    if (this.#polls === null || connection.state === "refused") this.#on.connection(connection);
  };

  async #poll() {
    this.#polls = setInterval(this.#ask, POLL_MS);
    await this.#ask();
  }

  #ask = async () => {
    if (document.hidden) return;
    const answer = await read(runPath(this.#run), { signal: this.#abort.signal }).catch(() => null);
    if (this.#polls === null || this.#abort.signal.aborted) return;
    this.#on.connection({ state: answer ? "polling" : "waiting" });
    if (answer) this.#take(answer.body, true);
  };

  #event = (name, [update]) => {
    if (name === "update" && update?.run === this.#run) this.#take(update, false);
  };

  // The snapshot may come before or after the first update; the newer of the two stands. An update says
  // from which number on (first_seq) it holds every row; whole states do not, and may leave a gap behind.
  #take(update, isSnapshot) {
    const seq = Number.isFinite(update.seq) ? update.seq : 0;
    if (isSnapshot && this.#seq !== null && seq <= this.#seq) return;
    const complete = seq === this.#seq || (seq > this.#seq && update.first_seq <= this.#seq + 1);
    const gap = this.#seq !== null && !complete;
    this.#seq = seq;
    if (gap) this.#on.gap();
    this.#on.update(update);
  }
}
