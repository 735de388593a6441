/**
 * A chart the size of a word, drawn on a canvas: areas, lines and marks over the page's time axis, no text. The
 * selected finding's steps are a band behind it, see Marks.
 */

import { h } from "../app/dom.js";

const MARK_PX = 3; // height of the strip of marks at the bottom
const AIR_PX = 2; // above the highest value

export class Spark {
  #canvas = h("canvas", { class: "spark", "aria-hidden": "true" });
  element = h("div", { class: "spark-box" }, h("div", { class: "mark" }), this.#canvas);

  /**
   * Draw `{from, to, top, areas, lines, marks}` (times in seconds, values from 0 to `top`): areas and lines
   * are `{t, values, colour, dash, width}`, painted in order; marks are `{t, on, colour}`, each as long as
   * the time to the next. Null is a gap.
   */
  draw({ from, to, top, areas = [], lines = [], marks = [] }) {
    const { context, width, height } = this.#cleared();
    if (width === 0 || !(top > 0) || !(to > from)) return;
    const x = (time) => ((time - from) / (to - from)) * width;
    const y = (value) => height - (Math.min(value, top) / top) * (height - AIR_PX);
    for (const area of areas) fill(context, area, x, y, height);
    for (const line of lines) stroke(context, line, x, y);
    for (const mark of marks) {
      context.fillStyle = mark.colour;
      for (const [start, end] of stretches(mark.t, mark.on, to)) {
        context.fillRect(x(start), height - MARK_PX, Math.max(x(end) - x(start), 2), MARK_PX);
      }
    }
  }

  #cleared() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const scale = window.devicePixelRatio || 1;
    const [w, h2] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.#canvas.width !== w || this.#canvas.height !== h2) Object.assign(this.#canvas, { width: w, height: h2 });
    const context = this.#canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    return { context, width, height };
  }
}

/** Stretches of time `[start, end]` over which `on` holds; the last one ends at `to`. Pure. */
export function stretches(t, on, to) {
  const found = [];
  for (let i = 0; i < t.length; i += 1) {
    if (!on[i]) continue;
    const start = t[i];
    while (i < t.length && on[i]) i += 1;
    found.push([start, Math.min(t[i] ?? to, to)]);
  }
  return found;
}

/** Index ranges `[first, last]` of values without a gap between them. Pure. */
export function pieces(values) {
  const found = [];
  for (let i = 0; i < values.length; i += 1) {
    if (values[i] === null) continue;
    const first = i;
    while (i + 1 < values.length && values[i + 1] !== null) i += 1;
    found.push([first, i]);
  }
  return found;
}

function path(context, { t, values }, first, last, x, y) {
  context.beginPath();
  for (let i = first; i <= last; i += 1) context.lineTo(x(t[i]), y(values[i]));
}

function fill(context, area, x, y, height) {
  context.fillStyle = area.colour;
  for (const [first, last] of pieces(area.values)) {
    path(context, area, first, last, x, y);
    context.lineTo(x(area.t[last]), height);
    context.lineTo(x(area.t[first]), height);
    context.fill();
  }
}

function stroke(context, line, x, y) {
  context.strokeStyle = line.colour;
  context.lineWidth = line.width ?? 1.5;
  context.lineJoin = "round";
  context.setLineDash(line.dash ?? []);
  for (const [first, last] of pieces(line.values)) {
    path(context, line, first, last, x, y);
    if (first === last) context.lineTo(x(line.t[first]) + 1, y(line.values[first]));
    context.stroke();
  }
  context.setLineDash([]);
}
