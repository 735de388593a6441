/** All ranks of a run beside one another: who stands out, the span of step times, and each rank over time. */

import { h, setText } from "../app/dom.js";
import { count } from "../app/format.js";
import { t } from "../locale/i18n.js";
import { RanksBand, RanksOne } from "./charts.js";
import { RanksFeed } from "./feed.js";
import { HeatMap } from "./heatmap.js";
import { RanksLegend, RanksLook } from "./look.js";
import { RanksOdd, RanksTable } from "./table.js";

export class Ranks {
  element = h("section", {
    class: "card card-ranks", "aria-labelledby": "ranks-title", "data-panel": "ranks", hidden: true,
  });
  #source;
  #scheduler;
  #feed;
  #known = h("span", { class: "count" });
  #note = h("span", { class: "ranks-note" });
  #empty = h("p", { class: "nothing" });
  #selected = null;
  #live = true;
  #gone = 0; // ranks that ended, as far as the updates told
  #hurry = false;
  #look = new RanksLook(() => this.#asked());
  #odd = new RanksOdd((rank) => this.#select(rank === this.#selected ? null : rank));
  #legend = new RanksLegend();
  #table = new RanksTable((rank) => this.#select(rank));
  #band;
  #heat;
  #one;

  /** `run`: its id; `source` as a Card's, `scheduler` draws; `on`: `{zoom, reset}`. */
  constructor(run, source, scheduler, on) {
    this.#source = source;
    this.#scheduler = scheduler;
    this.#feed = new RanksFeed(run, this.#loaded);
    this.#band = new RanksBand(source, on);
    this.#heat = new HeatMap(source, { select: (rank) => this.#select(rank) });
    this.#one = new RanksOne(source, { ...on, close: () => this.#select(null) });
    const head = h(
      "header", {}, h("h3", { id: "ranks-title" }, t("Ranks"), this.#known), this.#note, this.#look.element,
    );
    this.element.append(
      head, this.#odd.element, this.#empty, this.#band.card.element, this.#heat.element, this.#legend.element,
      this.#one.element, this.#table.element,
    );
    this.#show();
  }

  connect() {
    for (const part of this.#parts) part.connect();
    for (const [element, draw] of this.#drawings()) this.#scheduler.add(element, draw);
  }

  disconnect() {
    for (const [element] of this.#drawings()) this.#scheduler.remove(element);
    for (const part of this.#parts) part.disconnect();
    this.#feed.disconnect();
  }

  /** What follows the crosshair. */
  get cards() {
    return [this.#heat, this.#band.card, this.#one.card];
  }

  /** The run's update: one rank alone has nothing beside it. */
  update({ world_size: worldSize, ranks = [] }, live) {
    this.element.hidden = !(worldSize > 1);
    this.#band.card.element.hidden = this.element.hidden;
    const gone = ranks.filter(({ ended }) => ended !== null).length;
    this.#hurry ||= gone !== this.#gone;
    this.#gone = gone;
    this.#live = live;
  }

  /** Other colours. */
  recolour() {
    this.#heat.recolour();
    this.#show();
  }

  get #parts() {
    return [this.#look, this.#odd, this.#table, this.#heat, this.#one, this.#band.card];
  }

  #drawings() {
    return [
      [this.#heat.element, this.#drawHeat],
      [this.#band.card.element, this.#drawWith(this.#band.card)],
      [this.#one.card.element, this.#drawWith(this.#one.card)],
    ];
  }

  #drawHeat = () => {
    this.#ask();
    if (!this.#heat.element.hidden) this.#heat.draw();
  };

  #drawWith(card) {
    return (asked) => {
      this.#ask();
      card.draw(asked);
    };
  }

  #ask() {
    if (this.element.hidden) return;
    const { range } = this.#source;
    const { mode, scope } = this.#look.chosen;
    const phases = this.#feed.ranks?.phases ?? [];
    const selected = phases.length > 0 ? this.#selected : null;
    const held = range.following ? range.span : range.bounds;
    this.#feed.ensure(
      { bounds: range.bounds, held, all: scope === "all", mode, selected, live: this.#live, phases }, this.#hurry,
    );
    this.#hurry = false;
  }

  #loaded = () => {
    this.#band.show(this.#feed.band);
    this.#show();
    for (const [element] of this.#drawings()) this.#scheduler.ask(element);
  };

  #asked() {
    this.#show();
    for (const [element] of this.#drawings()) this.#scheduler.ask(element);
  }

  #select(rank) {
    this.#selected = rank;
    this.#asked();
  }

  #show() {
    const { ranks: data, series } = this.#feed;
    this.#empty.hidden = data !== null;
    this.#heat.element.hidden = data === null;
    this.#table.element.hidden = data === null;
    setText(this.#empty, t("Ranks are on their way…"));
    if (data === null) return;
    const { mode, order } = this.#look.chosen;
    this.#heat.show(data, { mode, order, selected: this.#selected });
    this.#legend.show(mode, data, this.#heat.scale, this.#source.theme.name);
    this.#odd.show(data, this.#selected);
    this.#look.show(data.known);
    this.#table.show(data);
    this.#one.show(this.#selected, data, series, this.#source.range.bounds);
    setText(this.#known, count(data.world_size));
    setText(this.#note, note(data));
  }
}

/** What must be said beside the number of ranks: some not seen, some told as averages, unequal work ahead. Pure. */
export function note({ world_size: all, known, reduced, batches = null }) {
  return [
    known < all ? t("{missing} not seen yet", { missing: count(all - known) }) : null,
    reduced > 0 ? t("{reduced} told as averages over about a second", { reduced: count(reduced) }) : null,
    batches === null
      ? null
      : t(
          "ranks have {least} to {most} batches: the run hangs when the first is done, unless all stop at the same step or train inside Join",
          { least: count(batches[0]), most: count(batches[1]) },
        ),
  ]
    .filter((text) => text !== null)
    .join(" · ");
}
