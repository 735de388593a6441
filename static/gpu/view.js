/** Every GPU of the run in a row of its own; nothing at all where there is none. */

import { h, setText } from "../app/dom.js";
import { count } from "../app/format.js";
import { overlaps } from "../charts/selection.js";
import { N, t } from "../locale/i18n.js";
import { ranksOn, whatIs } from "./facts.js";
import { CUDA_KEYS, ECC_KEYS, rowAt, summed } from "./readings.js";
import { coloursOf, eccNotes, GpuRow } from "./row.js";

/** Rows shown at most; of further devices there is their number. */
export const MOST = 16;

const LEGEND = [
  ["tensor", N("Tensor Cores busy")],
  ["allocated", N("allocated")],
  ["split", N("free, in split blocks")],
  ["cached", N("reserved, free")],
  ["others", N("not torch's")],
  ["capped", N("at its power limit")],
  ["bad", N("throttled")],
];

export class Gpus {
  element = h("section", { class: "card gpus", "aria-labelledby": "gpus-title", "data-panel": "gpus", hidden: true });
  #source;
  #scheduler;
  #facts;
  #span;
  #rows = new Map();
  #list = h("ul", { class: "gpu-rows" });
  #count = h("span", { class: "count" });
  #more = h("p", { class: "nothing", hidden: true });
  #swatches = new Map();
  #update = {};

  /** `source` as a Card's; `facts`: a GpuFacts; `scheduler` draws the rows; `span` as in Marks. */
  constructor(source, facts, scheduler, span) {
    this.#source = source;
    this.#facts = facts;
    this.#scheduler = scheduler;
    this.#span = span;
    const entries = LEGEND.map(([name, label]) => {
      const swatch = h("span", { class: "swatch" });
      this.#swatches.set(name, swatch);
      return h("li", { "data-colour": name }, swatch, t(label));
    });
    this.element.append(
      h("header", {}, h("h3", { id: "gpus-title" }, t("GPUs"), this.#count), h("ul", { class: "legend" }, ...entries)),
      this.#list, this.#more);
  }

  connect() {
    for (const row of this.#rows.values()) this.#scheduler.add(row.element, this.#drawing(row));
    this.#facts.connect(this.#named);
    this.#source.range.connect(this.#moved);
    this.recolour();
  }

  disconnect() {
    for (const row of this.#rows.values()) this.#scheduler.remove(row.element);
    this.#facts.disconnect();
    this.#source.range.disconnect(this.#moved);
  }

  /** The run's update. */
  update(update) {
    this.#update = update;
    const streams = [...this.#source.tracks.keys()].filter((name) => name.startsWith("gpu/")).sort(natural);
    this.element.hidden = streams.length === 0;
    if (streams.length === 0) return;
    for (const stream of streams.slice(0, MOST)) if (!this.#rows.has(stream)) this.#add(stream);
    setText(this.#count, count(streams.length));
    this.#more.hidden = streams.length <= MOST;
    setText(this.#more, t("{more} more GPUs are not shown here.", { more: count(streams.length - MOST) }));
    this.#facts.ensure(streams);
    this.#name();
  }

  /** The tracks hold the range shown. */
  filled() {
    this.#name();
  }

  recolour() {
    const colours = coloursOf(this.#source.theme.name, this.#source.ink());
    for (const [name, swatch] of this.#swatches) swatch.style.background = colours[name];
  }

  /** As a Card's: what follows the crosshair. */
  readAt(at) {
    for (const { row } of this.#rows.values()) row.readAt(at);
  }

  #add(stream) {
    const row = new GpuRow(stream);
    this.#rows.set(stream, { stream, row, element: row.element });
    this.#list.append(row.element);
    this.#scheduler.add(row.element, this.#drawing(this.#rows.get(stream)));
  }

  #drawing({ stream, row }) {
    return () => {
      const { tracks, range, theme, ink } = this.#source;
      const views = ranksOn(stream, this.#facts.known, [...tracks.keys()]).map((name) =>
        tracks.get(name).view(CUDA_KEYS, ...range.bounds),
      );
      row.draw(tracks.get(stream), summed(views), range.bounds, theme.name, ink());
    };
  }

  #moved = (moved) => moved && this.#name();

  #named = () => {
    this.#name();
    for (const { element } of this.#rows.values()) this.#scheduler.ask(element);
  };

  #name() {
    const hosts = new Set([...this.#rows.keys()].map((stream) => stream.split("/")[1]));
    const findings = this.#standing();
    let memory = false;
    for (const { stream, row } of this.#rows.values()) {
      const { name, model, notes } = whatIs(stream, this.#facts.known, hosts.size > 1, findings);
      row.named({ name, model, notes: [...notes, ...eccNotes(this.#errors(stream))] });
      memory ||= ranksOn(stream, this.#facts.known, [...this.#source.tracks.keys()]).length > 0;
    }
    for (const name of ["allocated", "split", "cached", "others"])
      this.#swatches.get(name).parentElement.hidden = !memory;
  }

  // What stands against devices, and did in the time that the viewer chose.
  #standing() {
    const { range } = this.#source;
    const all = this.#update.findings ?? [];
    return range.following ? all : all.filter((finding) => overlaps(this.#span(finding), range.bounds));
  }

  // Memory errors counted until now, or until the end of the time chosen.
  #errors(stream) {
    const { tracks, range } = this.#source;
    if (range.following) return this.#update.tiles?.gpu?.find(({ gpu }) => `gpu/${gpu}` === stream) ?? {};
    return rowAt(tracks.get(stream).view(ECC_KEYS, ...range.bounds), ECC_KEYS, null, range.bounds);
  }
}

function natural(a, b) {
  return a.localeCompare(b, "en", { numeric: true });
}
