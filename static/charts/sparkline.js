/** Curves the size of a word, with no axis: beside a finding, and in the list of runs. */

import { svg } from "../app/dom.js";
import { finite } from "../app/format.js";
import { streamsOf } from "./panels.js";
import { reduced } from "./series.js";

const [WIDTH, HEIGHT, PAD] = [120, 28, 2]; // units of the drawing
const POINTS = 60;

/**
 * Points `[[x, y], …]` of a finding's curve in the drawing's units; null where no metric shows the finding, or
 * fewer than two of its values were measured.
 */
export function curve(finding, tracks, [from, to]) {
  if (!finding.curve) return null;
  const [origin, key] = finding.curve;
  const names = streamsOf(origin, [...tracks.keys()]);
  const name = names.includes(`${origin}/${finding.ranks?.[0]}`) ? `${origin}/${finding.ranks[0]}` : names[0];
  if (name === undefined) return null;
  const { t, series } = tracks.get(name).view([key], from, to);
  const line = reduced({ t, ...series[key] }, from, to, POINTS);
  const known = line.t
    .map((time, i) => [time, finite(line.mean[i])])
    .filter(([time, value]) => value !== null && time >= from && time <= to);
  return known.length < 2 ? null : scaled(known, from, to);
}

function scaled(known, from, to) {
  const top = Math.max(...known.map(([, value]) => value), 1e-12);
  return known.map(([time, value]) => [
    PAD + ((time - from) / (to - from)) * (WIDTH - 2 * PAD),
    HEIGHT - PAD - Math.max(0, value / top) * (HEIGHT - 2 * PAD),
  ]);
}

/** The drawing; decoration, since the evidence stands beside it in words. */
export function sparkline() {
  const line = svg("polyline", { points: "" });
  const frame = {
    class: "sparkline", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true",
  };
  return svg("svg", frame, line);
}

/** Draw `points`, or hide the drawing where there are none. */
export function drawSparkline(drawing, points) {
  drawing.toggleAttribute("hidden", points === null);
  if (points !== null)
    drawing.firstChild.setAttribute("points", points.map((xy) => xy.map((v) => v.toFixed(1)).join()).join(" "));
}

const [ROW_WIDTH, ROW_HEIGHT, ROW_PAD] = [88, 20, 2];

/** `[element]` for at least two known values, else `[]`. Its bottom is zero, so that a flat line looks flat. */
export function spark(values) {
  const known = values.filter((value) => typeof value === "number" && Number.isFinite(value));
  if (known.length < 2) return [];
  const frame = {
    viewBox: `0 0 ${ROW_WIDTH} ${ROW_HEIGHT}`, width: ROW_WIDTH, height: ROW_HEIGHT, class: "spark-line",
    "aria-hidden": "true", focusable: "false",
  };
  return [svg("svg", frame, svg("path", { d: path(values, Math.max(...known)) }))];
}

/** The path through `values`, from 0 at the bottom to `top`; a value that is not known is a gap. */
export function path(values, top) {
  const x = (i) => ROW_PAD + (i / Math.max(values.length - 1, 1)) * (ROW_WIDTH - 2 * ROW_PAD);
  const y = (value) => ROW_HEIGHT - ROW_PAD - (top > 0 ? value / top : 0) * (ROW_HEIGHT - 2 * ROW_PAD);
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
