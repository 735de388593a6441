/** A line the size of a word: how fast a run was over its time, with no axis. */

import { svg } from "../app/dom.js";

const [WIDTH, HEIGHT, PAD] = [88, 20, 2];

/** `[element]` for at least two known values, else `[]`. Its bottom is zero, so that a flat line looks flat. */
export function spark(values) {
  const known = values.filter((value) => typeof value === "number" && Number.isFinite(value));
  if (known.length < 2) return [];
  const frame = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, class: "spark-line", "aria-hidden": "true", focusable: "false" };
  return [svg("svg", frame, svg("path", { d: path(values, Math.max(...known)) }))];
}

/** The path through `values`, from 0 at the bottom to `top`; a value that is not known is a gap. */
export function path(values, top) {
  const x = (i) => PAD + (i / Math.max(values.length - 1, 1)) * (WIDTH - 2 * PAD);
  const y = (value) => HEIGHT - PAD - (top > 0 ? value / top : 0) * (HEIGHT - 2 * PAD);
  let pen = "M";
  return values.map((value, i) => {
    if (typeof value !== "number" || !Number.isFinite(value)) {
      pen = "M";
      return "";
    }
    const at = `${pen}${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = "L";
    return at;
  }).join("");
}
