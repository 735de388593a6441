/** Step time and loss of all runs over the same axis: the number of the step, or the time trained. */

import { h, setText } from "../app/dom.js";
import { count, finite } from "../app/format.js";
import { ink, lineStyle } from "../app/theme.js";
import { Chart, loadCharts } from "../charts/chart.js";
import { timeTicks, valueTicks } from "../charts/picture.js";
import { N, t } from "../locale/i18n.js";

const KEYS = [["step_ms", N("Step time, ms")], ["loss", N("Loss")]];
const OUTLIER = 3; // the axis ends early when its top 2 % reach beyond this many times the rest
const PX_PER_MARK = 84;

export class Curves {
  element = h("section", { class: "curves", hidden: true });
  #align;
  #theme;
  #head = h("h2");
  #legend = h("ul", { class: "legend" });
  #other = h("a", { class: "button" });
  #charts;
  #drawn = null;
  #ready = false;

  constructor(align, theme) {
    [this.#align, this.#theme] = [align, theme];
    setText(this.#head, align === "time" ? t("Over the time trained") : t("Over the same steps"));
    setText(this.#other, align === "time" ? t("Align by step") : t("Align by time"));
    this.#charts = KEYS.map(([key, title]) => {
      const canvas = h("div", { class: "canvas" });
      const card = h(
        "section", { class: "card", "data-curve": key }, h("header", {}, h("h3", {}, t(title))),
        h("div", { class: "plot" }, canvas),
      );
      return { key, card, chart: new Chart(canvas, { onZoom() {}, onReset() {} }), canvas };
    });
    this.element.append(
      h("div", { class: "charts-head" }, this.#head, this.#legend, this.#other),
      h("div", { class: "grid" }, ...this.#charts.map(({ card }) => card)),
    );
  }

  connect() {
    window.addEventListener("resize", this.#draw);
    loadCharts().then(() => { this.#ready = true; this.#draw(); }, () => { this.element.hidden = true; });
  }

  disconnect() {
    window.removeEventListener("resize", this.#draw);
    this.#ready = false;
    for (const { chart } of this.#charts) chart.disconnect();
  }

  /** `href`: the same comparison aligned the other way. */
  update(runs, curves, href) {
    this.element.hidden = false;
    this.#other.setAttribute("href", href);
    this.#drawn = { names: runs.map((run) => String(run.name ?? run.run)), curves };
    this.#legend.replaceChildren(...this.#drawn.names.map((name, i) => entry(name, lineStyle(i, this.#theme.name))));
    this.#draw();
  }

  #draw = () => {
    if (this.#drawn === null) return;
    for (const { key, card, chart, canvas } of this.#charts) {
      const lines = linesOf(this.#drawn.curves, key, this.#theme.name);
      card.hidden = lines.length === 0;
      if (lines.length > 0 && this.#ready)
        chart.draw(pictureOf(lines, this.#align, key === "loss", canvas.clientWidth, ink()));
    }
  };
}

/** Lines of one metric, those that have a value, each in the style of its run. */
export function linesOf(curves, key, theme) {
  return curves.flatMap((curve, i) => {
    const values = curve[key].map((value) => finite(value));
    if (values.every((value) => value === null)) return [];
    return [{ t: curve.x, mean: values, min: values, max: values, band: false, ...lineStyle(i, theme) }];
  });
}

/** What the chart draws; a few peaks do not flatten the rest. */
export function pictureOf(lines, align, floating, width, colours) {
  const values = lines.flatMap((line) => line.mean).filter((value) => value !== null).sort((a, b) => a - b);
  const [least, usual, peak] = [values[0], values[Math.floor(0.98 * (values.length - 1))], values.at(-1)];
  const top = peak > OUTLIER * usual && usual > 0 ? usual * 1.4 : peak;
  const y = valueTicks(floating ? least : 0, top);
  const last = Math.max(...lines.map((line) => line.t.at(-1)));
  const marks = Math.max(2, Math.floor(width / PX_PER_MARK));
  const x = align === "time" ? timeTicks(0, last, marks) : { values: valueTicks(0, last, marks).values };
  return {
    lines, stacked: false, ink: colours, draggable: false,
    x: { range: [0, last], values: x.values, texts: x.texts ?? x.values.map((value) => count(value)) },
    y: { range: y.range, values: y.values, texts: y.values.map((value) => String(Number(value.toPrecision(6)))) },
  };
}

function entry(name, { colour, dash }) {
  const swatch = h("span", { class: "swatch line" });
  swatch.style.borderTop = `2px ${dash === "solid" ? "solid" : "dashed"} ${colour}`;
  return h("li", {}, swatch, h("span", { class: "name" }, name));
}
