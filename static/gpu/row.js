/** One GPU: its name, and for each thing measured the newest value, words beside it and a small chart. */

import { h, icon, setText, setValue } from "../app/dom.js";
import { count } from "../app/format.js";
import { faded, lineStyle, phaseColour } from "../app/theme.js";
import { N, t } from "../locale/i18n.js";
import { CUDA_KEYS, drawings, GPU_KEYS, readings, rowAt } from "./readings.js";
import { Spark } from "./spark.js";

const CELLS = [
  ["util", N("Utilisation")],
  ["memory", N("Memory")],
  ["power", N("Power")],
  ["clock", N("Clock")],
  ["temperature", N("Temperature")],
];
const LEAST_POINTS = 40; // of a small chart, however narrow

export class GpuRow {
  element;
  #name = h("span", { class: "gpu-id" });
  #model = h("span", { class: "gpu-model" });
  #notes = h("ul", { class: "gpu-notes" });
  #cells = new Map();
  #view = null;
  #bounds;
  #cuda = null;
  #at = null;
  #noted = "";

  constructor(stream) {
    const cells = CELLS.map(([id, label]) => {
      const [text, unit, note, spark] = [
        h("span", { class: "number" }), h("span", { class: "unit" }), h("span", { class: "note" }), new Spark(),
      ];
      const sign = h("span", { class: "sign", hidden: true }, icon("warning"));
      this.#cells.set(id, { text, unit, note, sign, spark });
      return h(
        "div", { class: "gpu-cell", "data-cell": id }, h("dt", {}, t(label)),
        h("dd", {}, h("span", { class: "now" }, text, unit), h("span", { class: "said" }, sign, note), spark.element),
      );
    });
    this.element = h("li", { class: "gpu-row", "data-gpu": stream },
      h("div", { class: "gpu-who" }, h("h4", {}, this.#name, this.#model), this.#notes), h("dl", {}, ...cells));
  }

  /** `{name, model, notes: [{tone, text}]}`: what it is called, and what is wrong with it. */
  named({ name, model, notes }) {
    setText(this.#name, name);
    setText(this.#model, model);
    this.#model.title = model;
    const noted = JSON.stringify(notes);
    if (noted === this.#noted) return;
    this.#noted = noted;
    this.#notes.replaceChildren(...notes.map(({ tone, text }) => h("li", { "data-tone": tone }, icon(tone), text)));
  }

  /** Draw over `bounds`, from the Track of the device and the columns that torch told of it (or null). */
  draw(track, cuda, bounds, theme, ink) {
    this.#view = track.view(GPU_KEYS, ...bounds);
    this.#bounds = bounds;
    this.#cuda = cuda;
    this.#read();
    const width = Math.max(this.#cells.get("util").spark.element.clientWidth, LEAST_POINTS);
    const pictures = drawings(this.#view, cuda, bounds, width, coloursOf(theme, ink));
    for (const [id, { spark }] of this.#cells) spark.draw(pictures[id]);
  }

  /** Say the values at time `at`, the newest when it is null. */
  readAt(at) {
    this.#at = at;
    if (this.#view !== null) this.#read();
  }

  #read() {
    const row = {
      ...rowAt(this.#view, GPU_KEYS, this.#at, this.#bounds), ...cudaAt(this.#cuda, this.#at, this.#bounds),
    };
    for (const [id, { text, unit, note, bad = false }] of Object.entries(readings(row))) {
      const cell = this.#cells.get(id);
      setValue(cell.text, text);
      setText(cell.unit, text === null ? "" : unit);
      setText(cell.note, note ?? "");
      cell.sign.hidden = !bad;
      cell.note.closest(".said").classList.toggle("bad", bad);
    }
  }
}

function cudaAt(cuda, at, bounds) {
  return cuda === null ? Object.fromEntries(CUDA_KEYS.map((key) => [key, null])) : rowAt(cuda, CUDA_KEYS, at, bounds);
}

/** Memory errors of the newest row, as notes. Pure. */
export function eccNotes({ gpu_ecc_uncorrected: fatal = null, gpu_ecc_corrected: mended = null }) {
  const notes = [];
  if (fatal > 0)
    notes.push({ tone: "critical", text: t("memory errors, not corrected: {errors}", { errors: count(fatal) }) });
  if (mended > 0)
    notes.push({ tone: "info", text: t("memory errors, corrected: {errors}", { errors: count(mended) }) });
  return notes;
}

/** Colours of the drawings and of the legend: allocated, split and cached memory, and what is not torch's. */
export function coloursOf(theme, ink) {
  const { colour: line } = lineStyle(0, theme);
  return {
    line,
    soft: faded(line, 0.2),
    tensor: faded(phaseColour("optimizer", theme), 0.85),
    allocated: faded(line, 0.9),
    split: faded(phaseColour("checkpoint", theme), 0.95),
    cached: faded(phaseColour("forward", theme), 0.55),
    others: theme === "dark" ? "rgba(109,118,131,0.5)" : "rgba(169,175,184,0.55)",
    edge: theme === "dark" ? "#8b95a3" : "#767d87",
    limit: ink.text,
    capped: faded(phaseColour("data", theme), 0.75),
    bad: ink.bad,
  };
}
