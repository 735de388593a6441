/** Where axes put their marks, and what is written there. */

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

function pad(value) {
  return String(value).padStart(2, "0");
}
