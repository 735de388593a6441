/** A finding's evidence: names that carry their unit become a label and a readable value. */

import { number, percent, withUnit } from "./format.js";

const UNITS = [
  ["_per_s", "1/s"], ["_ms", "ms"], ["_mb", "MB"], ["_pct", "%"], ["_percent", "%"], ["_mhz", "MHz"],
  ["_cores", "cores"], ["_us", "µs"], ["_s", "s"], ["_w", "W"], ["_c", "°C"],
];
const MAX_TEXT = 160; // characters of one value

/** `{label, value}` for one evidence entry; value is null when it was not measured. */
export function evidence(key, value) {
  if (value === null || value === undefined) return { label: words(key), value: null };
  if (Array.isArray(value)) return { label: words(key), value: clip(value.map((item) => number(item) ?? "–").join(", ")) };
  if (typeof value === "object") return { label: words(key), value: clip(JSON.stringify(value)) };
  if (typeof value === "boolean") return { label: words(key), value: value ? "yes" : "no" };
  if (typeof value !== "number") return { label: words(key), value: clip(String(value)) };
  if (/(^|_)share(_|$)/.test(key)) return { label: words(key), value: `${percent(value)}\u202f%` };
  const unit = UNITS.find(([ending]) => key.endsWith(ending));
  if (unit === undefined) return { label: words(key), value: number(value) };
  return { label: words(key.slice(0, -unit[0].length)), value: withUnit(value, unit[1]) };
}

function words(key) {
  return key.replaceAll("_", " ").trim();
}

function clip(text) {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}
