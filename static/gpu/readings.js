/** What a GPU's row says and draws, from the columns of its streams. Pure. */

import { number, quantity, withUnit } from "../app/format.js";
import { lowerBound, reduced } from "../charts/series.js";
import { t } from "../locale/i18n.js";
import { isPowerCapped, isThrottled, throttleReasons } from "./facts.js";

/** Columns of a device's stream, its memory errors among them, and of what torch tells of a rank on it. */
export const ECC_KEYS = ["gpu_ecc_corrected", "gpu_ecc_uncorrected"];
export const GPU_KEYS = [
  "gpu_util",
  "gpu_tensor_activity",
  "gpu_sm_activity",
  "gpu_dram_activity",
  "gpu_memory_used_mb",
  "gpu_memory_total_mb",
  "gpu_power_w",
  "gpu_power_limit_w",
  "gpu_temperature_c",
  "gpu_sm_clock_mhz",
  "gpu_sm_clock_max_mhz",
  "gpu_throttle_bits",
  "gpu_others_util",
  "gpu_others_memory_mb",
  ...ECC_KEYS,
];
export const CUDA_KEYS = ["cuda_allocated_mb", "cuda_reserved_mb", "cuda_split_mb"];

const RECENT_ROWS = 5; // a value older than so many rows is no longer the newest
const NEAR_S = 5; // of the crosshair, at least; wider where rows are wider apart

/**
 * The row of `view` (see Track.view) at time `at`, or the newest inside `bounds` when it is null (a view has a
 * row beyond either edge): `{key: value | null}`.
 */
export function rowAt({ t: times, series }, keys, at, [from, to] = [-Infinity, Infinity]) {
  const last = at === null ? lowerBound(times, to + 1e-9) - 1 : nearest(times, at);
  const first = at === null ? lowerBound(times, from) : 0;
  const found = {};
  for (const key of keys) {
    found[key] = null;
    for (let i = last; last !== null && i >= first && i > last - RECENT_ROWS && found[key] === null; i -= 1) {
      found[key] = series[key]?.[columnOf(key)][i] ?? null;
    }
  }
  return found;
}

// Peaks count where one of them is trouble; elsewhere the mean of a stretch is what it was.
function columnOf(key) {
  return /memory|temperature|bits|ecc|cuda_|split/.test(key) ? "max" : "mean";
}

function nearest(times, at) {
  let best = null;
  const reach = Math.max(NEAR_S, times.length > 1 ? (times.at(-1) - times[0]) / (times.length - 1) : 0);
  times.forEach((time, i) => {
    if (Math.abs(time - at) <= reach && (best === null || Math.abs(time - at) < Math.abs(times[best] - at))) best = i;
  });
  return best;
}

/** What each cell says: id → `{text, unit, note, bad}`; text null is "not measured". */
export function readings(row) {
  return {
    util: util(row), memory: memory(row), power: power(row), clock: clock(row),
    temperature: quantity(row.gpu_temperature_c, "°C"),
  };
}

function util({ gpu_util: busy, gpu_tensor_activity: tensor, gpu_sm_activity: sm, gpu_others_util: others }) {
  const inside = [
    tensor === null ? null : t("tensor {share} %", { share: number(Math.round(tensor)) }),
    sm === null ? null : t("SM {share} %", { share: number(Math.round(sm)) }),
    others > 0 ? t("others {share} %", { share: number(Math.round(others)) }) : null,
  ];
  return { ...quantity(busy === null ? null : Math.round(busy), "%"), note: told(inside), bad: false };
}

function memory({ gpu_memory_used_mb: used, gpu_memory_total_mb: total, ...row }) {
  const { cuda_reserved_mb: reserved, cuda_allocated_mb: allocated, cuda_split_mb: split } = row;
  const inGb = (total ?? used ?? 0) >= 1e4; // the unit beside the large number holds for the small ones too
  const scaled = (mb) => (mb === null ? null : inGb ? mb / 1e3 : Math.round(mb));
  const size = (mb) => number(scaled(mb));
  const parts = [
    allocated === null ? null : t("allocated {size}", { size: size(allocated) }),
    split === null ? null : t("split {size}", { size: size(split) }),
    reserved === null ? null : t("reserved {size}", { size: size(reserved) }),
    row.gpu_others_memory_mb > 0 ? t("others {size}", { size: size(row.gpu_others_memory_mb) }) : null,
  ];
  return { ...of(scaled(used), scaled(total), inGb ? "GB" : "MB"), note: told(parts), bad: false };
}

function power({ gpu_power_w: watts, gpu_power_limit_w: limit }) {
  return { ...of(watts === null ? null : Math.round(watts), limit, "W"), note: "", bad: false };
}

function clock({ gpu_sm_clock_mhz: now, gpu_sm_clock_max_mhz: most, gpu_throttle_bits: bits }) {
  const reasons = throttleReasons(bits).map(({ words }) => t(words));
  return { ...of(now === null ? null : Math.round(now), most, "MHz"), note: told(reasons), bad: isThrottled(bits) };
}

function of(value, limit, unit) {
  const shown = quantity(value, unit);
  return limit === null || shown.text === null
    ? shown
    : { ...shown, unit: t("of {limit}", { limit: withUnit(limit, unit) }) };
}

function told(parts) {
  return parts.filter((text) => text !== null).join(" · ");
}

/** Names of the colours that the drawings use, each with its meaning; `colours` maps them to CSS colours. */
export function drawings(gpu, cuda, [from, to], width, colours) {
  const line = (view, key) => thin(view, key, [from, to], width);
  const at = { from, to };
  const area = (view, key, colour) => ({ ...line(view, key), colour });
  const bits = line(gpu, "gpu_throttle_bits");
  const mark = (test, colour) => ({ t: bits.t, on: bits.values.map(test), colour });
  const total = peak(gpu, "gpu_memory_total_mb") ?? peak(gpu, "gpu_memory_used_mb");
  const reserved =
    cuda === null
      ? []
      : [
          area(cuda, "cuda_reserved_mb", colours.cached),
          area(withSplit(cuda), "upto_split", colours.split),
          area(cuda, "cuda_allocated_mb", colours.allocated),
        ];
  const limit = { ...line(gpu, "gpu_power_limit_w"), colour: colours.limit, dash: [2, 3], width: 1 };
  const power = line(gpu, "gpu_power_w");
  return {
    util: {
      ...at, top: 100, areas: [area(gpu, "gpu_util", colours.soft), area(gpu, "gpu_tensor_activity", colours.tensor)],
      lines: [{ ...line(gpu, "gpu_util"), colour: colours.line }],
    },
    memory: {
      ...at, top: total, areas: [area(gpu, "gpu_memory_used_mb", colours.others), ...reserved],
      lines: [{ ...line(gpu, "gpu_memory_used_mb"), colour: colours.edge, width: 1 }],
    },
    power: {
      ...at, top: (peak(gpu, "gpu_power_limit_w") ?? peak(gpu, "gpu_power_w")) * 1.08,
      areas: [{ ...power, colour: colours.soft }], lines: [limit, { ...power, colour: colours.line }],
    },
    clock: {
      ...at, top: (peak(gpu, "gpu_sm_clock_max_mhz") ?? peak(gpu, "gpu_sm_clock_mhz")) * 1.05,
      lines: [{ ...line(gpu, "gpu_sm_clock_mhz"), colour: colours.line }],
      marks: [mark(isPowerCapped, colours.capped), mark(isThrottled, colours.bad)],
    },
    temperature: {
      ...at, top: 100, areas: [area(gpu, "gpu_temperature_c", colours.soft)],
      lines: [{ ...line(gpu, "gpu_temperature_c"), colour: colours.line }],
    },
  };
}

function thin({ t: times, series }, key, [from, to], width) {
  const columns = series[key] ?? { min: [], max: [], mean: [] };
  const { t: kept, ...few } = reduced({ t: times, ...columns }, from, to, Math.max(width, 1));
  return { t: kept, values: few[columnOf(key)] };
}

function withSplit(cuda) {
  const sum = (name) =>
    cuda.series.cuda_allocated_mb[name].map((value, i) =>
      value === null ? null : value + (cuda.series.cuda_split_mb[name][i] ?? 0),
    );
  return { t: cuda.t, series: { upto_split: { min: sum("min"), max: sum("max"), mean: sum("mean") } } };
}

function peak({ series }, key) {
  const known = (series[key]?.max ?? []).filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((a, b) => Math.max(a, b));
}

/** Views (see Track.view) of several ranks on one device as one; null where there is none. */
export function summed(views) {
  if (views.length < 2) return views[0] ?? null;
  const [base, ...others] = [...views].sort((a, b) => b.t.length - a.t.length);
  const series = {};
  for (const [key, columns] of Object.entries(base.series)) {
    const sum = (name) =>
      columns[name].map((value, i) =>
        others.reduce((total, view) => plus(total, before(view, key, name, base.t[i])), value),
      );
    series[key] = { min: sum("min"), max: sum("max"), mean: sum("mean") };
  }
  return { t: base.t, series };
}

// What another rank had at that time: the last it told before.
function before({ t: times, series }, key, name, at) {
  const index = lowerBound(times, at + 1e-9) - 1;
  return index < 0 ? null : series[key][name][index];
}

function plus(a, b) {
  return a === null ? b : b === null ? a : a + b;
}
