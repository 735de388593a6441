/** From columns to a picture: which lines a panel shows over a range, in which colours, on which axes. */

import { timeText } from "../app/format.js";
import { lineStyle, phaseColour } from "../app/theme.js";
import { metricsOf, streamsOf } from "./panels.js";
import { reduced } from "./series.js";

const PX_PER_MARK = 72; // room for one mark on the time axis
const OUTLIER = 3; // the axis ends early when its top 2 % reach beyond this many times the rest

/**
 * Lines of `panel` over [from, to], of at most `points` points: what the legend names and the chart draws.
 * `tracks`: name → Track; `chosen`: the key drawn by a panel of kind "choose".
 */
export function linesOf(panel, { schema, tracks, chosen, points = Infinity }, [from, to], theme) {
  const names = [...tracks.keys()];
  const lines = [];
  metricsOf(panel, schema).forEach((metric, index) => {
    if (panel.kind === "choose" && metric.key !== chosen) return;
    const streams = streamsOf(metric.origin, names);
    for (const name of streams) {
      const { t, series } = tracks.get(name).view([metric.key], from, to);
      const columns = reduced({ t, ...series[metric.key] }, from, to, points);
      const line = { ...metric, ...style(panel, metric, index, theme), ...columns };
      line.drawn = metric.combine === "max" ? line.max : metric.combine === "min" ? line.min : line.mean;
      line.band = metric.combine === "mean" && !metric.limit;
      if (streams.length > 1) line.width *= 0.7;
      if (line.drawn.some((value) => value !== null && (metric.phase === null || value > 0))) lines.push(line);
    }
  });
  return lines;
}

function style(panel, metric, index, theme) {
  if (panel.kind === "stack") return { colour: phaseColour(metric.phase, theme), dash: "solid" };
  if (metric.limit) return { colour: theme === "dark" ? "#8b95a3" : "#767d87", dash: "2px,4px", width: 1 };
  return lineStyle(panel.kind === "choose" ? 0 : index, theme);
}

/** The chart's picture, and `clipped`: the peak when it lies above the axis, else null. */
export function pictureOf(panel, lines, range, { width, ink, draggable }) {
  const high = highest(panel, lines);
  const low = panel.floating ? lowest(lines, high.top) : 0;
  const y = valueTicks(low, high.top);
  y.range[1] = Math.min(y.range[1], (panel.most ?? Infinity) * 1.02);
  const x = timeTicks(range[0], range[1], Math.max(2, Math.floor(width / PX_PER_MARK)));
  return {
    clipped: high.peak > y.range[1] ? high.peak : null,
    picture: {
      lines: lines.map((line) => ({ ...line, mean: line.drawn })), stacked: panel.kind === "stack", ink, draggable,
      x: { range, ...x },
      y: { ...y, texts: y.values.map((value) => markText(value, panel.unit, y.range[1])) },
    },
  };
}

/** All marks of an axis in the unit that suits its top, so that they can be compared. */
function markText(value, unit, top) {
  const factor = unit === "share" ? 100 : (unit === "ms" || unit === "MB") && top >= 1e4 ? 1e-3 : 1;
  const shown = { ms: ["ms", "s"], MB: ["MB", "GB"], share: ["%"], "%": ["%"] }[unit]?.[factor === 1e-3 ? 1 : 0] ?? "";
  const text = Number((value * factor).toPrecision(6));
  return `${text >= 1e5 ? text.toExponential(0) : text}${shown && "\u2009"}${shown}`;
}

function highest(panel, lines) {
  const columns = lines
    .filter((line) => !line.limit)
    .map((line) => (line.band && panel.kind !== "stack" ? line.max : line.drawn));
  const values = panel.kind === "stack" ? sums(columns) : columns.flat();
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  if (sorted.length === 0) return { top: 1, peak: 0 };
  const [peak, usual] = [sorted.at(-1), sorted[Math.floor(0.98 * (sorted.length - 1))]];
  return { peak, top: peak > (panel.outlier ?? OUTLIER) * usual && usual > 0 ? usual * 1.4 : peak };
}

function lowest(lines, fallback) {
  const values = lines.flatMap((line) => line.min).filter((value) => value !== null);
  return values.reduce((a, b) => Math.min(a, b), fallback);
}

function sums(columns) {
  return (columns[0] ?? []).map((_, i) => columns.reduce((total, column) => total + (column[i] ?? 0), 0));
}

/** A line's value at time `at` (null: the newest known); the nearest point counts, null where there is none. */
export function valueAt(line, at) {
  const index = at === null ? lastKnown(line.drawn) : nearest(line.t, at);
  return index === null ? null : line.drawn[index];
}

function lastKnown(values) {
  for (let i = values.length - 1; i >= 0; i -= 1) if (values[i] !== null) return i;
  return null;
}

function nearest(t, at) {
  if (t.length === 0 || at > t.at(-1) + (t.at(-1) - t[0]) * 0.02) return null;
  let best = 0;
  for (let i = 1; i < t.length; i += 1) if (Math.abs(t[i] - at) <= Math.abs(t[best] - at)) best = i;
  return best;
}

const STEPS_S = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600,
  1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
const MAX_TICKS = 12; // never more marks than this, whatever is asked for

/** Marks on the time axis (seconds since start): `{values, texts}`, at most `wanted` + 1 of them. */
export function timeTicks(from, to, wanted) {
  const span = Math.max(to - from, 1e-3);
  const step = STEPS_S.find((s) => span / s <= Math.min(wanted, MAX_TICKS)) ?? span;
  const values = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + 1e-9; i += 1) values.push(i * step);
  return { values, texts: values.map((value) => timeText(value, step)) };
}

/** A value axis from `low` or a little below to `high` or a little above, marks at round values: `{range, values}`. */
export function valueTicks(low, high, wanted = 4) {
  const span = high - low > 0 ? high - low : Math.abs(high) || 1;
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((s) => s >= rough * (1 - 1e-9));
  // Ends lie on quarters of a step, so that the axis seldom moves.
  const bottom = Math.floor((low / step) * 4 + 1e-9) / 4;
  const top = Math.max(bottom + 0.5, Math.ceil((high / step) * 4 + 0.1) / 4);
  const values = [];
  for (let i = Math.ceil(bottom - 1e-9); i <= top + 1e-9; i += 1) values.push(Number((i * step).toPrecision(12)));
  return { range: [bottom, top].map((end) => Number((end * step).toPrecision(12))), values };
}
