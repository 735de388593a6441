/** Asks the hub for the past: what the charts show, and when steps ended. */

import { MOST as MOST_GPUS } from "../gpu/view.js";
import { read, runPath } from "../net/api.js";
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
    return byOrigin.flatMap(([origin, keys]) =>
      streamsOf(origin, streams, MOST[origin]).map((stream) => [stream, keys]),
    );
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

const MAX_ASKED = 64; // steps of one request: the hub takes no more
const SOON_MS = 100; // steps wanted within this become one request
const TIMES_AGAIN_MS = 5_000; // after a request that failed

export class StepTimes {
  #run;
  #onKnown;
  #times = new Map(); // "rank/step" → seconds since start, or null where the hub has no such step
  #wanted = new Map();
  #timer = null;
  #abort = new AbortController();

  /** `onKnown()` when more is known than before. */
  constructor(run, onKnown) {
    this.#run = run;
    this.#onKnown = onKnown;
  }

  disconnect() {
    this.#abort.abort();
    clearTimeout(this.#timer);
  }

  /** `[from, to]` in seconds of what a finding tells of: from its first step until it was over, else `now`. */
  span(finding, now) {
    const first = this.#at(finding.ranks?.[0] ?? 0, finding.first_step) ?? finding.raised_at_s ?? 0;
    return [Math.min(first, finding.raised_at_s ?? first), finding.cleared_at_s ?? Math.max(now, first)];
  }

  #at(rank, step) {
    if (!Number.isInteger(step) || step < 0) return null;
    const key = `${rank}/${step}`;
    if (!this.#times.has(key)) this.#ask(key, rank, step);
    return this.#times.get(key) ?? null;
  }

  #ask(key, rank, step) {
    this.#wanted.set(key, { rank, step });
    this.#timer ??= setTimeout(this.#fetch, SOON_MS);
  }

  #fetch = async () => {
    const wanted = [...this.#wanted.values()].slice(0, MAX_ASKED);
    const ranks = [...new Set(wanted.map(({ rank }) => rank))];
    let afterMs = SOON_MS;
    try {
      await Promise.all(ranks.map((rank) => this.#load(rank, wanted.filter((one) => one.rank === rank))));
      this.#onKnown();
    } catch (error) {
      if (error.name === "AbortError") return;
      afterMs = TIMES_AGAIN_MS;
    }
    this.#timer = this.#wanted.size > 0 ? setTimeout(this.#fetch, afterMs) : null;
  };

  async #load(rank, wanted) {
    const query = { stream: `rank/${rank}`, at: wanted.map(({ step }) => step).join(",") };
    const { body } = await read(`${runPath(this.#run)}/times`, { signal: this.#abort.signal, query });
    for (const { step } of wanted) {
      this.#times.set(`${rank}/${step}`, body.t_s?.[step] ?? null);
      this.#wanted.delete(`${rank}/${step}`);
    }
  }
}
