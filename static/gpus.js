/** Every GPU of the run in a row of its own; nothing at all where there is none. */

import { h, setText } from "./dom.js";
import { count } from "./format.js";
import { ranksOn, whatIs } from "./gpufacts.js";
import { CUDA_KEYS, summed } from "./gpureadings.js";
import { coloursOf, eccNotes, GpuRow } from "./gpurow.js";
import { N, t } from "./i18n.js";

/** Rows shown at most; of further devices there is their number. */
export const MOST = 16;

const LEGEND = [
  ["tensor", N("Tensor Cores busy")], ["allocated", N("allocated")], ["split", N("free, in split blocks")],
  ["cached", N("reserved, free")], ["others", N("not torch's")], ["capped", N("at its power limit")], ["bad", N("throttled")],
];

export class Gpus {
  element = h("section", { class: "card gpus", "aria-labelledby": "gpus-title", "data-panel": "gpus", hidden: true });
  #source;
  #scheduler;
  #facts;
  #rows = new Map();
  #list = h("ul", { class: "gpu-rows" });
  #count = h("span", { class: "count" });
  #more = h("p", { class: "nothing", hidden: true });
  #swatches = new Map();
  #update = {};

  /** `source` as a Card's; `facts`: a GpuFacts; `scheduler` draws the rows. */
  constructor(source, facts, scheduler) {
    this.#source = source;
    this.#facts = facts;
    this.#scheduler = scheduler;
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
    this.recolour();
  }

  disconnect() {
    for (const row of this.#rows.values()) this.#scheduler.remove(row.element);
    this.#facts.disconnect();
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
      const views = ranksOn(stream, this.#facts.known, [...tracks.keys()]).map((name) => tracks.get(name).view(CUDA_KEYS, ...range.bounds));
      row.draw(tracks.get(stream), summed(views), range.bounds, theme.name, ink());
    };
  }

  #named = () => {
    this.#name();
    for (const { element } of this.#rows.values()) this.#scheduler.ask(element);
  };

  #name() {
    const hosts = new Set([...this.#rows.keys()].map((stream) => stream.split("/")[1]));
    const newest = new Map((this.#update.tiles?.gpu ?? []).map((tile) => [`gpu/${tile.gpu}`, tile]));
    let memory = false;
    for (const { stream, row } of this.#rows.values()) {
      const { name, model, notes } = whatIs(stream, this.#facts.known, hosts.size > 1, this.#update.findings ?? []);
      row.named({ name, model, notes: [...notes, ...eccNotes(newest.get(stream) ?? {})] });
      memory ||= ranksOn(stream, this.#facts.known, [...this.#source.tracks.keys()]).length > 0;
    }
    for (const name of ["allocated", "split", "cached", "others"]) this.#swatches.get(name).parentElement.hidden = !memory;
  }
}

function natural(a, b) {
  return a.localeCompare(b, "en", { numeric: true });
}
