/** A chart's legend, which is also its read-out: the value at the crosshair, else the newest. */

import { h, setText, setValue, svg } from "../app/dom.js";

export class Legend {
  element = h("ul", { class: "legend" });
  #shape = "";
  #values = [];
  #onChoose;

  /** `onChoose(key)` when the viewer picks what is drawn. */
  constructor(onChoose) {
    this.#onChoose = onChoose;
  }

  connect() {
    this.element.addEventListener("click", this.#clicked);
  }

  disconnect() {
    this.element.removeEventListener("click", this.#clicked);
  }

  /** `entries`: `{key, label, colour, dash, filled, choice, chosen, text, unit}` in reading order. */
  update(entries) {
    const shape = JSON.stringify(entries.map(({ text, unit, ...rest }) => rest));
    if (shape !== this.#shape) this.#build(entries);
    this.#shape = shape;
    entries.forEach(({ text, unit }, i) => {
      const [value, unitElement] = this.#values[i];
      setValue(value, text);
      setText(unitElement, text === null ? "" : unit);
    });
  }

  #build(entries) {
    this.#values = entries.map(() => [h("span", { class: "number" }), h("span", { class: "unit" })]);
    const focused = document.activeElement?.dataset?.key;
    this.element.replaceChildren(...entries.map((entry, i) => {
      const parts = [swatch(entry), h("span", { class: "name" }, entry.label), ...this.#values[i]];
      if (!entry.choice) return h("li", {}, ...parts);
      return h(
        "li",
        {},
        h("button", { type: "button", "data-key": entry.key, "aria-pressed": String(entry.chosen) }, ...parts),
      );
    }));
    if (focused) this.element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  #clicked = (event) => {
    const key = event.target.closest("button")?.dataset.key;
    if (key !== undefined) this.#onChoose(key);
  };
}

function swatch({ colour, dash, width, filled, chosen, choice }) {
  const frame = { class: "swatch", viewBox: "0 0 16 8", "aria-hidden": "true" };
  if (filled) return svg("svg", frame, svg("rect", { x: 2, y: 0, width: 11, height: 8, rx: 2, fill: colour }));
  const line = {
    x1: 0, x2: 16, y1: 4, y2: 4, stroke: choice && !chosen ? "currentColor" : colour,
    "stroke-width": 1.6 * (width ?? 1.5),
  };
  const dashes = dash === "solid" ? {} : { "stroke-dasharray": dash.replaceAll("px", "") };
  return svg("svg", frame, svg("line", { ...line, ...dashes, opacity: choice && !chosen ? 0.35 : 1 }));
}
