/** Asks the hub for the past: the visible range at most 600 points wide, a little after the viewer settled. */

import { read, runPath } from "../net/api.js";
import { MOST as MOST_GPUS } from "../gpu/view.js";
import { keysByOrigin, streamsOf } from "./panels.js";

const POINTS = 600; // per series and request; more than a chart has pixels to show
const SETTLE_MS = 120; // after the last move of the range
const MOST = { gpu: MOST_GPUS, cuda: MOST_GPUS }; // streams, where a row each is drawn
const AGAIN_MS = 2_000; // after a request that failed

export class History {
  #run;
  #range;
  #tracks;
  #known;
  #onLoaded;
  #timer = null;
  #abort = null;

  /** `known()` gives `{schema, streams, now}`; `onLoaded()` is called when new columns are in `tracks`. */
  constructor({ run, range, tracks, known, onLoaded }) {
    this.#run = run;
    this.#range = range;
    this.#tracks = tracks;
    this.#known = known;
    this.#onLoaded = onLoaded;
  }

  connect() {
    this.#range.connect(this.#moved);
  }

  disconnect() {
    this.#range.disconnect(this.#moved);
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  /** Fetch the range soon; calls in quick succession become one. */
  request(afterMs = SETTLE_MS) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#fetch, afterMs);
  }

  /** Fetch only if what is drawn has holes and nothing is on its way. */
  ensure() {
    if (this.#timer !== null || !this.#range.following) return;
    const [from] = this.#range.bounds;
    if ([...this.#tracks.values()].some((track) => !track.covers(from))) this.request();
  }

  #moved = (moved) => {
    if (moved) this.request();
  };

  #fetch = async () => {
    const abort = new AbortController();
    this.#abort?.abort();
    this.#abort = abort;
    const [from, to] = this.#range.bounds;
    try {
      await Promise.all(this.#wanted().map(([stream, keys]) => this.#load(stream, keys, from, to, abort.signal)));
      if (this.#abort === abort) this.#timer = null;
      this.#onLoaded();
    } catch (error) {
      if (error.name !== "AbortError" && this.#abort === abort) this.request(AGAIN_MS);
    }
  };

  #wanted() {
    const { schema, streams } = this.#known();
    const byOrigin = Object.entries(keysByOrigin(schema));
    return byOrigin.flatMap(([origin, keys]) => streamsOf(origin, streams, MOST[origin]).map((stream) => [stream, keys]));
  }

  async #load(stream, keys, from, to, signal) {
    const edge = (to - from) / POINTS; // a point beyond either edge, so that lines run off the plot
    const [first, last] = [Math.max(0, from - edge), to + edge];
    const reach = Math.min(last, this.#known().now);
    const query = { stream, keys: keys.join(","), from: first, to: last, points: POINTS };
    const { body } = await read(`${runPath(this.#run)}/series`, { signal, query });
    this.#tracks.get(stream)?.setBase(body, first === 0 ? -Infinity : from, reach);
  }
}
