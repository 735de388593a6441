/** Asks the hub about the ranks: the heat map's cells, the band of step times, and one rank's own phases. */

import { read, runPath } from "../net/api.js";

export const FEW = 16; // ranks shown unless the viewer wants all
export const ALL = 1_024; // ranks shown at most
const COLUMNS = 120;
const POINTS = 300; // of the band
const MOST_COLUMNS = 240; // of one rank's phases
const EVERY_MS = { few: 2_000, all: 5_000 }; // between two questions while time goes on
const AGAIN_MS = 3_000; // after one that failed
const SETTLE_MS = 120; // after the last change of the question

export class RanksFeed {
  /** The newest answers: `ranks`, `band` and `series` (of the rank asked for), each null before the first. */
  ranks = null;
  band = null;
  series = null;
  #run;
  #onLoaded;
  #nowMs;
  #askedMs = -Infinity;
  #asked = "";
  #abort = null;
  #timer = null;
  #failed = false;

  /** `onLoaded()` when there are new answers; `nowMs()` is a rising clock. */
  constructor(run, onLoaded, nowMs = () => performance.now()) {
    this.#run = run;
    this.#onLoaded = onLoaded;
    this.#nowMs = nowMs;
  }

  disconnect() {
    this.#abort?.abort();
    this.#abort = null;
    clearTimeout(this.#timer);
  }

  /**
   * Ask if it is time, or if it is another question: `{bounds, held, all, mode, selected, live, phases}`,
   * `held` being what of the range the viewer chose; `hurry` when something happened to a rank.
   */
  ensure(question, hurry = false) {
    const { held, all, mode, selected, live } = question;
    const key = JSON.stringify([held, all, all ? mode : "", selected, live]);
    if (key !== this.#asked) {
      const first = this.#asked === "";
      this.#asked = key;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#ask(question), first ? 0 : SETTLE_MS);
    } else if (this.#abort === null && (hurry || this.#due(question))) this.#ask(question);
  }

  #due({ all, live }) {
    const waitMs = this.#failed ? AGAIN_MS : all ? EVERY_MS.all : EVERY_MS.few;
    return (live || this.#failed) && this.#nowMs() - this.#askedMs >= waitMs;
  }

  async #ask(question) {
    const abort = new AbortController();
    this.#abort?.abort();
    this.#abort = abort;
    this.#askedMs = this.#nowMs();
    try {
      const [ranks, band, series] = await Promise.all([
        this.#read("ranks", ranksQuery(question), abort), this.#read("band", bandQuery(question), abort),
        question.selected === null ? null : this.#read("ranks", seriesQuery(question), abort),
      ]);
      if (this.#abort !== abort) return;
      Object.assign(this, {
        ranks, band, series: series === null ? null : { rank: question.selected, ...seriesOf(series) },
      });
      this.#failed = false;
      this.#onLoaded();
    } catch (error) {
      if (this.#abort === abort) this.#failed = error.name !== "AbortError";
    } finally {
      if (this.#abort === abort) this.#abort = null;
    }
  }

  async #read(path, query, { signal }) {
    const { body } = await read(`${runPath(this.#run)}/${path}`, { signal, query });
    return body;
  }
}

// All cells of a thousand ranks are megabytes: then only those that are drawn.
function ranksQuery({ bounds: [from, to], all, mode }) {
  const cells = all ? { phase: "phase", wait: "comm_ms" }[mode] : "phase,step_ms,comm_ms";
  return { from, to, columns: COLUMNS, limit: all ? ALL : FEW, cells };
}

function bandQuery({ bounds: [from, to] }) {
  return { metric: "step_ms", from, to, points: POINTS };
}

// Of the ranks' answer, not of the stream of steps: hosts with many ranks tell of most in averages only.
function seriesQuery({ bounds: [from, to], selected, phases }) {
  return {
    from, to, columns: MOST_COLUMNS, limit: 1, only: selected, cells: phases.map((phase) => `${phase}_ms`).join(","),
  };
}

/** The cells of one rank's answer as columns of a Track. Pure. */
export function seriesOf({ t, cells }) {
  const line = ([values = []]) => ({ min: values, max: values, mean: values });
  return { t, series: Object.fromEntries(Object.entries(cells ?? {}).map(([key, rows]) => [key, line(rows)])) };
}
