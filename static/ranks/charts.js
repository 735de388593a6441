/** Charts of ranks: step time of all, and the phases of one. */

import { h, setText } from "../app/dom.js";
import { count, withUnit } from "../app/format.js";
import { Card } from "../charts/card.js";
import { Track } from "../charts/series.js";
import { N, t, word } from "../locale/i18n.js";
import { oddText, stateWord } from "./words.js";

const BAND = {
  id: "ranks_step", title: N("Step time across ranks"), kind: "lines", unit: "ms",
  series: [
    { key: "ranks_median", label: N("middle") }, { key: "ranks_max", label: N("slowest") },
    { key: "ranks_min", label: N("fastest") },
  ],
};
const SCHEMA = schemaOf(BAND);

export class RanksBand {
  card;
  #track = new Track();
  #filled = false;

  /** `source` and `on` as a Card's. */
  constructor(source, on) {
    const own = {
      ...source, tracks: new Map([["run", this.#track]]), schema: () => SCHEMA, filled: () => this.#filled,
    };
    this.card = new Card(BAND, own, { ...on, chosen: () => {} });
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

const PHASES = { id: "rank", title: N("Where this rank's time goes"), kind: "stack", unit: "ms" };

export class RanksOne {
  element = h("div", { class: "ranks-one", hidden: true });
  card;
  #track = new Track();
  #panel = { ...PHASES, series: [] };
  #who = h("strong");
  #about = h("span", { class: "about" });
  #close = h("button", { type: "button", class: "close" }, t("Close"));
  #onClose;
  #rank = null;
  #filled = false; // with what the hub says of the rank shown

  /** `source`: as a Card's; `on`: `{zoom, reset, close}`. */
  constructor(source, on) {
    this.#onClose = on.close;
    const own = {
      ...source, tracks: new Map([["run", this.#track]]), schema: () => schemaOf(this.#panel),
      filled: () => this.#filled,
    };
    this.card = new Card(this.#panel, own, { zoom: on.zoom, reset: on.reset, chosen: () => {} });
    this.card.element.hidden = true;
    this.element.append(h("p", { class: "ranks-one-head" }, this.#who, this.#about, this.#close), this.card.element);
  }

  connect() {
    this.card.connect();
    this.#close.addEventListener("click", this.#onClose);
  }

  disconnect() {
    this.card.disconnect();
    this.#close.removeEventListener("click", this.#onClose);
  }

  /** The selected rank (null: none), the hub's answer about all, and this rank's own `series` once it came. */
  show(selected, data, series, [from, to]) {
    this.element.hidden = selected === null;
    this.card.element.hidden = this.element.hidden;
    if (selected !== this.#rank) this.#track.setBase({}, 0, 0);
    this.#filled = series?.rank === selected;
    this.#rank = selected;
    if (selected === null) return;
    this.#panel.series = data.phases.map((phase) => ({ key: `${phase}_ms`, label: phase }));
    const rank = data.ranks.find((one) => one.rank === selected) ?? { rank: selected };
    setText(
      this.#who,
      rank.host
        ? t("Rank {rank} on {host}", { rank: rank.rank, host: rank.host })
        : t("Rank {rank}", { rank: rank.rank }),
    );
    setText(this.#about, about(rank, data.now_s));
    if (this.#filled) this.#track.setBase(series, from, to);
  }
}

/** A schema in which all of a panel's series are metrics of the stream "run". */
function schemaOf({ series }) {
  return { metrics: series.map(({ key, label }) => ({ key, title: label, origin: "run", buckets: "mean" })) };
}

/** What is known of a rank, in one line. Pure. */
export function about(rank, nowS) {
  const { detail } = oddText(rank, nowS);
  const steps = count(rank.steps ?? null);
  const [step, wait] = [withUnit(rank.step_ms ?? null, "ms"), withUnit(rank.comm_ms ?? null, "ms")];
  return [
    rank.worst ? stateWord(rank) : null,
    detail === "" ? null : detail,
    steps === null ? null : t("{steps} steps", { steps }),
    step === null
      ? null
      : wait === null
        ? t("{step} a step", { step })
        : t("{step} a step, of it waiting {wait}", { step, wait }),
    rank.phase && rank.worst !== "stopped" ? t("now in {phase}", { phase: word(rank.phase) }) : null,
    rank.reduced ? t("told as averages over about a second") : null,
  ]
    .filter((text) => text !== null)
    .join(" · ");
}
