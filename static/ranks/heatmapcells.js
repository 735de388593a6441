/** A heat map's numbers: how large its rows are, which cell lies where, and the colour of each. Pure. */

import { phaseColour } from "../app/theme.js";

/** Room around the cells in px, the same as the charts' (see chart.js), so that times stand above one another. */
export const FRAME = { l: 52, r: 10, t: 6, b: 24 };

/** Rows up to so many are so high (px); beyond the last they are one pixel. */
const HEIGHTS = [[8, 20], [16, 15], [64, 8], [256, 3], [512, 2]];
/** Rows this high carry their rank's number, and lines between them. */
export const ROOMY_PX = 12;

// One hue whose lightness alone tells the value: from the ground to the colour of communication and beyond.
const WAIT = {
  light: [[246, 236, 243], [204, 121, 167], [92, 22, 62]],
  dark: [[62, 44, 60], [163, 82, 128], [255, 214, 236]],
};
const OPACITY = 0.88; // of phases, as in the ribbon
const SAMPLE = 4_096; // values looked at to find the scale
const SCALE_AT = 0.98; // of these values; a single peak does not wash out the rest

/** Height of each of `rows` rows, in px. */
export function rowHeight(rows) {
  return HEIGHTS.find(([most]) => rows <= most)?.[1] ?? 1;
}

/** Where everything lies: `{rowPx, height, x(time), timeAt(x), y(row), rowAt(y)}`; outside the cells it is null. */
export function geometry({ rows, width, from, to }) {
  const rowPx = rowHeight(rows);
  const wide = Math.max(width - FRAME.l - FRAME.r, 1);
  return {
    rowPx, wide, high: rows * rowPx, height: FRAME.t + rows * rowPx + FRAME.b,
    x: (time) => FRAME.l + ((time - from) / (to - from)) * wide,
    timeAt: (x) => (x < FRAME.l || x > FRAME.l + wide ? null : from + ((x - FRAME.l) / wide) * (to - from)),
    y: (row) => FRAME.t + row * rowPx,
    rowAt: (y) => (y < FRAME.t || y >= FRAME.t + rows * rowPx ? null : Math.floor((y - FRAME.t) / rowPx)),
  };
}

/** The column that holds `time` among middles `t` of columns `width` wide (seconds); null where none does. */
export function columnAt(t, width, time) {
  let [low, high] = [0, t.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (time < t[middle] - width / 2) high = middle - 1;
    else if (time >= t[middle] + width / 2) low = middle + 1;
    else return middle;
  }
  return null;
}

/** Row numbers of `ranks` (as the hub sends them: worst first) in the order shown: "worst" or "number". */
export function ordered(ranks, order) {
  const rows = ranks.map((_, i) => i);
  return order === "number" ? rows.sort((a, b) => ranks[a].rank - ranks[b].rank) : rows;
}

/** The value that gets the last colour of the scale; 0 where nothing was measured. */
export function scaleOf(matrix) {
  const cells = matrix.length * (matrix[0]?.length ?? 0);
  const [stride, columns] = [Math.max(1, Math.floor(cells / SAMPLE)), matrix[0]?.length ?? 0];
  const values = [];
  for (let i = 0; i < cells; i += stride) {
    const value = matrix[Math.floor(i / columns)][i % columns];
    if (value !== null) values.push(value);
  }
  values.sort((a, b) => a - b);
  return values.length === 0 ? 0 : values[Math.floor(SCALE_AT * (values.length - 1))];
}

/** Colour of a wait at `share` of the scale (0 to 1) as `[r, g, b]`. */
export function waitColour(share, theme) {
  const stops = WAIT[theme === "dark" ? "dark" : "light"];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((from, i) => Math.round(from + (stops[low + 1][i] - from) * (at - low)));
}

/**
 * RGBA bytes of `matrix`, a pixel a cell, rows in the given order; what is null stays clear.
 * mode "phase": indices into `phases`; "wait": milliseconds on a scale up to `scale`.
 */
export function pixels({ matrix, rows, columns, mode, phases, scale, theme }) {
  const bytes = new Uint8ClampedArray(rows.length * columns * 4);
  const palette = mode === "phase" ? phases.map((phase) => rgb(phaseColour(phase, theme))) : shades(theme);
  const index =
    mode === "phase"
      ? (value) => value
      : (value) => Math.min(SHADES, Math.round((scale > 0 ? value / scale : 0) * SHADES));
  const opacity = mode === "phase" ? Math.round(OPACITY * 255) : 255;
  let at = 0;
  for (const row of rows) {
    const values = matrix[row];
    for (let column = 0; column < columns; column += 1, at += 4) {
      const value = values?.[column] ?? null;
      const colour = value === null ? undefined : palette[index(value)];
      if (colour === undefined) continue;
      [bytes[at], bytes[at + 1], bytes[at + 2]] = colour;
      bytes[at + 3] = opacity;
    }
  }
  return bytes;
}

const SHADES = 63;

function shades(theme) {
  return Array.from({ length: SHADES + 1 }, (_, i) => waitColour(i / SHADES, theme));
}

function rgb(colour) {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
}
