/** Step time of all ranks in one chart: the middle one as a line, the span from fastest to slowest as a band. */

import { Card } from "../charts/card.js";
import { N } from "../locale/i18n.js";
import { Track } from "../charts/series.js";

const PANEL = { id: "ranks_step", title: N("Step time across ranks"), kind: "lines", unit: "ms" };
const LINES = [["ranks_median", N("middle")], ["ranks_max", N("slowest")], ["ranks_min", N("fastest")]];
const SCHEMA = {
  metrics: LINES.map(([key, title]) => ({ key, unit: "ms", title, origin: "run", buckets: "mean", panel: PANEL.id })),
};

export class RanksBand {
  card;
  #track = new Track();
  #filled = false;

  /** `source` and `on` as a Card's. */
  constructor(source, on) {
    const own = { ...source, tracks: new Map([["run", this.#track]]), schema: () => SCHEMA, filled: () => this.#filled };
    this.card = new Card(PANEL, own, { ...on, chosen: () => {} });
  }

  /** The hub's answer `{t, min, median, max, from, to}`. */
  show(band) {
    this.#filled = true;
    this.#track.setBase(columnsOf(band), band.from, band.to);
  }
}

/** The band as columns of a Track: the middle line carries the span. Pure. */
export function columnsOf({ t, min, median, max }) {
  const line = (values) => ({ min: values, max: values, mean: values });
  return { t, series: { ranks_median: { min, max, mean: median }, ranks_max: line(max), ranks_min: line(min) } };
}
