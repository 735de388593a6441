/** One chart on the page: title, legend with read-out, plot, and words where there is nothing to plot. */

import { h, setText } from "../app/dom.js";
import { percent, quantity, withUnit } from "../app/format.js";
import { t, word } from "../locale/i18n.js";
import { Chart } from "./chart.js";
import { Legend } from "./legend.js";
import { metricsOf, streamsOf } from "./panels.js";
import { linesOf, pictureOf, valueAt } from "./picture.js";

const LEAST_PX = 0.5; // of new data, below which a drawing would look the same
const LATEST_MS = 5_000; // but the newest values are read at least so often
const AREA_PX = 3; // per point of a stack: its outlines are many, and each costs
const MIN_POINTS = 100; // per line, however narrow the chart

export class Card {
  element;
  plot = h("div", { class: "plot" });
  #panel;
  #source;
  #canvas = h("div", { class: "canvas", "aria-hidden": "true" });
  #tag = h("div", { class: "cross-tag" });
  #empty = h("p", { class: "empty" });
  #peak = h("p", { class: "peak", title: t("The axis ends below this peak, so that the rest can be seen") });
  #legend;
  #chart;
  #lines = [];
  #at = null;
  #chosen = null;
  #drawn = { to: -Infinity, atMs: -Infinity }; // newest time drawn (seconds since start), and when

  /**
   * `source`: `{schema(), tracks, range, theme, ink(), ready(), filled(), draggable}`; `on`: `{zoom, reset,
   * chosen}`.
   */
  constructor(panel, source, on) {
    this.#panel = panel;
    this.#source = source;
    this.#legend = new Legend((key) => {
      this.#chosen = key;
      on.chosen();
    });
    this.#chart = new Chart(this.#canvas, { onZoom: on.zoom, onReset: on.reset });
    const id = `panel-${panel.id}`;
    this.plot.append(
      h("div", { class: "mark" }), this.#canvas, h("div", { class: "cross" }), this.#tag, this.#empty, this.#peak,
    );
    this.element = h(
      "section", { class: `card card-${panel.id}`, "aria-labelledby": id, "data-panel": panel.id },
      h("header", {}, h("h3", { id }, word(panel.title)), this.#legend.element), this.plot,
    );
  }

  /** Whether it is for runs with a GPU (true) or without one (false) only; null for all. */
  get gpu() {
    return this.#panel.gpu ?? null;
  }

  connect() {
    this.#legend.connect();
  }

  disconnect() {
    this.#legend.disconnect();
    this.#chart.disconnect();
  }

  /** Draw. Unless `asked` for by the viewer, nothing happens before there is half a pixel of new data. */
  draw = (asked) => {
    const { schema, tracks, range, theme, ink, ready, filled, draggable } = this.#source;
    const bounds = range.bounds;
    const width = this.plot.clientWidth;
    const newest = Math.min(bounds[1], this.#newest());
    const pixels = ((newest - this.#drawn.to) / (bounds[1] - bounds[0])) * width;
    const nowMs = performance.now();
    if (!asked && pixels < LEAST_PX && nowMs - this.#drawn.atMs < LATEST_MS) return;
    this.#drawn = { to: newest, atMs: nowMs };
    this.#choose();
    const points = Math.max(this.#panel.kind === "stack" ? width / AREA_PX : width, MIN_POINTS);
    const wanted = { schema: schema(), tracks, chosen: this.#chosen, points };
    this.#lines = linesOf(this.#panel, wanted, bounds, theme.name);
    this.#read();
    const plottable = ready() && this.#lines.length > 0;
    this.#empty.hidden = plottable;
    this.#canvas.hidden = !plottable;
    if (!plottable) {
      setText(this.#empty, this.#lines.length > 0 || !filled() ? t("Charts are on their way…") : t("not measured"));
      setText(this.#peak, "");
      return;
    }
    const size = { width, ink: ink(), draggable };
    const { picture, clipped } = pictureOf(this.#panel, this.#lines, bounds, size);
    setText(
      this.#peak,
      clipped === null ? "" : `↑ ${withUnit(clipped, this.#panel.unit === "share" ? "" : this.#panel.unit)}`,
    );
    this.#chart.draw(picture);
  };

  /** Read the values at time `at` (seconds since start), or the newest when it is null. */
  readAt(at, text = "") {
    this.#at = at;
    setText(this.#tag, text);
    this.#read();
  }

  #newest() {
    return Math.max(-Infinity, ...[...this.#source.tracks.values()].map((track) => track.end ?? -Infinity));
  }

  #choose() {
    if (this.#panel.kind !== "choose") return;
    const keys = this.#options().map(({ key }) => key);
    if (!keys.includes(this.#chosen)) this.#chosen = keys[0] ?? null;
  }

  // Of several units only those that were measured are offered.
  #options() {
    const { schema, tracks } = this.#source;
    const metrics = metricsOf(this.#panel, schema());
    const names = [...tracks.keys()];
    const seen = ({ key, origin }) =>
      streamsOf(origin, names).some((name) =>
        tracks
          .get(name)
          .view([key], -Infinity, Infinity)
          .series[key].mean.some((value) => value !== null),
      );
    const found = metrics.filter(seen);
    return found.length > 0 ? found : metrics.slice(0, 1);
  }

  #read() {
    if (this.#panel.kind === "choose") this.#legend.update(this.#options().map(this.#choice));
    else if (this.#panel.kind === "stack") this.#legend.update(this.#shares());
    else this.#legend.update(this.#perMetric());
  }

  // One entry a metric, however many ranks or devices there are: then the span of their values.
  #perMetric() {
    const byKey = new Map();
    for (const line of this.#lines) byKey.set(line.key, [...(byKey.get(line.key) ?? []), line]);
    return [...byKey.values()].map((lines) => {
      const values = lines.map((line) => valueAt(line, this.#at)).filter((value) => value !== null);
      const label = lines.length > 1 ? `${lines[0].label} × ${lines.length}` : lines[0].label;
      return { ...entryOf(lines[0]), label, ...this.#span(values) };
    });
  }

  #span(values) {
    if (values.length === 0) return { text: null, unit: "" };
    const [low, high] = [Math.min(...values), Math.max(...values)].map((value) => quantity(value, this.#panel.unit));
    const text = low.text === high.text ? high.text : `${low.text}–${high.text}`;
    return { text, unit: this.#panel.bare ? "" : high.unit };
  }

  #choice = ({ key, label }) => {
    const line = this.#lines[0];
    const chosen = key === this.#chosen;
    const value =
      chosen && line !== undefined ? quantity(valueAt(line, this.#at), this.#panel.unit) : { text: "", unit: "" };
    return { key, label, colour: line?.colour ?? "", dash: "solid", choice: true, chosen, ...value };
  };

  // From the top of the stack to its bottom, as the eye meets them.
  #shares() {
    const values = this.#lines.map((line) => ({ line, raw: valueAt(line, this.#at) }));
    const total = values.reduce((sum, { raw }) => sum + (raw ?? 0), 0);
    return values.reverse().map(({ line, raw }) => {
      const share = total > 0 ? percent((raw ?? 0) / total) : null;
      return { ...entryOf(line), filled: true, text: withUnit(raw, "ms"), unit: share === null ? "" : `${share} %` };
    });
  }
}

function entryOf({ key, label, colour, dash, width }) {
  return { key, label, colour, dash, width };
}
