/** A finding's evidence: names that carry their unit become a label and a readable value. */

import { number, percent, withUnit } from "../app/format.js";
import { t, word } from "../locale/i18n.js";

const UNITS = {
  per_s: "1/s", ms: "ms", mb: "MB", pct: "%", percent: "%", mhz: "MHz", cores: "cores", us: "µs", s: "s", w: "W", c: "°C",
};
// The unit is the name's last word, or stands before which quantile it is: wait_ms, wait_ms_p95.
const WITH_UNIT = new RegExp(`^(.+?)_(${Object.keys(UNITS).join("|")})(_p\\d+|_min|_max|_mean)?$`);
const MAX_TEXT = 160; // characters of one value

/** `{label, value}` for one evidence entry; value is null when it was not measured. */
export function evidence(key, value) {
  if (value === null || value === undefined) return { label: words(key), value: null };
  if (Array.isArray(value)) return { label: words(key), value: clip(value.map((item) => number(item) ?? "–").join(", ")) };
  if (typeof value === "object") return { label: words(key), value: clip(JSON.stringify(value)) };
  if (typeof value === "boolean") return { label: words(key), value: value ? t("yes") : t("no") };
  if (typeof value !== "number") return { label: words(key), value: clip(word(value)) };
  if (/(^|_)share(_|$)/.test(key)) return { label: words(key), value: `${percent(value)}\u202f%` };
  const [, name, unit, which = ""] = key.match(WITH_UNIT) ?? [];
  if (unit === undefined) return { label: words(key), value: number(value) };
  return { label: [words(name), words(which)].filter(Boolean).join(" "), value: withUnit(value, UNITS[unit]) };
}

function words(key) {
  return word(key.replaceAll("_", " ").trim());
}

function clip(text) {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}
