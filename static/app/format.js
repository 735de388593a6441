/** Numbers as people read them. Every function takes null for "not measured" and gives null back. */

const THIN = "\u202f"; // narrow no-break space: groups digits and binds a number to its unit

/** A finite number, or null. The hub sends NaN and infinity as text. */
export function finite(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** About three significant digits, digits grouped: 0.00123, 4.56, 78.9, 12 345. */
export function number(value) {
  if (value === null || value === undefined) return null;
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e15)) return value.toExponential(2).replace("-", "−");
  const digits = size >= 100 || Number.isInteger(size) ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return group(value.toFixed(digits));
}

/** A whole number, digits grouped. */
export function count(value) {
  return finite(value) === null ? null : group(Math.round(value).toFixed(0));
}

function group(text) {
  const [whole, fraction] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, THIN).replace("-", "−");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** A share of one as percent: 0.314 → "31". */
export function percent(value) {
  if (finite(value) === null) return null;
  const hundred = value * 100;
  return hundred > 0 && hundred < 9.95 ? hundred.toFixed(1) : group(hundred.toFixed(0));
}

const SCALES = {
  ms: [[1, "ms"], [1e4, "s", 1e3]],
  MB: [[1, "MB"], [1e4, "GB", 1e3]],
  s: [[1, "s"]],
};

/** `{text, unit}` of a value in `unit` ("ms", "MB", "%", "1/s", "cores", "" …), scaled to be readable. */
export function quantity(value, unit) {
  if (finite(value) === null) return { text: value === null || value === undefined ? null : String(value), unit: "" };
  if (unit === "share") return { text: percent(value), unit: "%" };
  if (unit === "cores") return { text: group(value.toFixed(2)), unit };
  const scale = (SCALES[unit] ?? [[1, unit]]).filter(([least]) => Math.abs(value) >= least || least === 1).at(-1);
  return { text: number(value / (scale[2] ?? 1)), unit: scale[1] === "1/s" ? "/s" : scale[1] };
}

/** The same in one string: "12.4 ms", null when not measured. */
export function withUnit(value, unit) {
  const { text, unit: shown } = quantity(value, unit);
  return text === null ? null : joined(text, shown);
}

/** A value that is text already with its unit: "12.4 ms", "20/s", "7". */
export function joined(text, unit) {
  return unit === "" || unit.startsWith("/") ? text + unit : text + THIN + unit;
}

/** A length of time: "42 s", "3 min 05 s", "2 h 07 min", "3 d 4 h". */
export function duration(seconds) {
  if (finite(seconds) === null) return null;
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s}${THIN}s`;
  if (s < 3600) return `${Math.floor(s / 60)}${THIN}min ${pad(s % 60)}${THIN}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}${THIN}h ${pad(Math.floor(s / 60) % 60)}${THIN}min`;
  return `${Math.floor(s / 86400)}${THIN}d ${Math.floor(s / 3600) % 24}${THIN}h`;
}

/** How old the newest data is: tenths below ten seconds, then a duration. */
export function age(seconds) {
  if (finite(seconds) === null) return null;
  return seconds < 10 ? `${Math.max(0, seconds).toFixed(1)}${THIN}s` : duration(seconds);
}

/** A moment in the viewer's own zone. */
export function moment(unixSeconds) {
  if (finite(unixSeconds) === null) return null;
  return new Date(unixSeconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** A time since start as an axis or a crosshair shows it, as fine as `step` (seconds) needs. */
export function timeText(seconds, step) {
  if (step < 1) return `${seconds.toFixed(step < 0.01 ? 3 : step < 0.1 ? 2 : 1)} s`;
  const s = Math.round(seconds);
  if (s < 60 && step < 60) return `${s} s`;
  const [days, hours, minutes] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  if (days > 0) return step >= 86400 ? `${days} d` : `${days} d ${hours}:${pad(minutes)}`;
  if (step >= 60 && s < 3600) return `${minutes} min`;
  if (step >= 3600) return `${hours} h`;
  const tail = step >= 60 ? "" : `:${pad(s % 60)}`;
  return hours > 0 ? `${hours}:${pad(minutes)}${tail || " h"}` : `${minutes}${tail}`;
}

function pad(value) {
  return String(value).padStart(2, "0");
}
