/** One run as it happens: a snapshot at once, then the hub's updates, and word of every gap. */

import { read, runPath } from "./api.js";
import { LiveSocket, socketUrl } from "./socket.js";

const AGAIN_MS = 2_000; // after a snapshot that failed
const NAMESPACE = "/live";

export class Feed {
  #run;
  #on;
  #socket;
  #seq = null;
  #abort = new AbortController();
  #timer = null;

  /**
   * `on.snapshot(snapshot, hubUnixS)`, `on.update(update)`, `on.gap()` when updates were missed,
   * `on.connection({state, …})` (see socket.js), `on.failure(ApiError)` when there is no such run.
   */
  constructor(run, on) {
    this.#run = run;
    this.#on = on;
    this.#socket = new LiveSocket({ url: socketUrl(), namespace: NAMESPACE, onEvent: this.#event, onState: this.#state });
  }

  connect() {
    this.#snapshot();
    this.#socket.connect();
  }

  disconnect() {
    this.#abort.abort();
    clearTimeout(this.#timer);
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
    this.#on.connection(connection);
    if (connection.state === "open") this.#socket.emit("watch", { run: this.#run }).catch(() => {});
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
