/** When steps ended: findings are told in steps, charts in seconds. Asked of the hub, each step once. */

import { read, runPath } from "../net/api.js";

const MAX_ASKED = 64; // steps of one request: the hub takes no more
const SOON_MS = 100; // steps wanted within this become one request
const AGAIN_MS = 5_000; // after a request that failed

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
      afterMs = AGAIN_MS;
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
