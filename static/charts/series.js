/** One stream's columns on the page: what the hub reduced for us, and the live rows that came after it. */

import { finite } from "../app/format.js";

const TAIL_ROWS = 1_200; // newest live rows kept, about 20 minutes at one a second

/** Index of the first element of the rising array `t` that is ≥ `value`. */
export function lowerBound(t, value) {
  let [low, high] = [0, t.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class Track {
  #base = { t: [], series: {} };
  #reach = [Infinity, -Infinity]; // the base answers for everything in here
  #t = [];
  #rows = {};
  #since = Infinity; // the tail holds every row from here on

  /** History as the hub reduced it, complete over [from, to]: `{t, series: {key: {min, max, mean}}}`. */
  setBase({ t = [], series = {} }, from, to) {
    this.#base = { t, series };
    this.#reach = [from, to];
  }

  /** Live rows `{t_s: […], key: […]}`; rows not newer than the newest known are ignored. */
  append(rows) {
    const t = rows.t_s ?? [];
    const known = this.#t.at(-1) ?? -Infinity;
    const start = t.findIndex((value) => value > known);
    if (start < 0) return;
    if (this.#t.length === 0) this.#since = t[start];
    for (const key of Object.keys(rows)) if (key !== "t_s") this.#rows[key] ??= new Array(this.#t.length).fill(null);
    this.#t.push(...t.slice(start));
    for (const [key, column] of Object.entries(this.#rows)) {
      column.push(...(rows[key]?.slice(start).map(finite) ?? new Array(t.length - start).fill(null)));
    }
    this.#bound();
  }

  /** Rows were missed: what the tail holds is no longer complete, so it goes. */
  cut() {
    this.#t = [];
    this.#rows = {};
    this.#since = Infinity;
  }

  #bound() {
    const excess = this.#t.length - TAIL_ROWS;
    if (excess <= 0) return;
    this.#t.splice(0, excess);
    for (const column of Object.values(this.#rows)) column.splice(0, excess);
    this.#since = this.#t[0];
  }

  /** Whether everything from `from` on is here, so that the hub need not be asked. */
  covers(from) {
    const [baseFrom, baseTo] = this.#reach;
    return this.#since <= from || (baseFrom <= from && this.#since <= baseTo);
  }

  /** Newest time known, in seconds since start; null when nothing is. */
  get end() {
    const times = [this.#base.t.at(-1), this.#t.at(-1)].filter((time) => time !== undefined);
    return times.length > 0 ? Math.max(...times) : null;
  }

  /** Rows held in all: the page's memory is bounded by this. */
  get size() {
    return this.#base.t.length + this.#t.length;
  }

  /** `{t, series: {key: {min, max, mean}}}` over [from, to] and one point beyond either edge. */
  view(keys, from, to) {
    const baseT = this.#base.t;
    const [low, high] = [Math.max(0, lowerBound(baseT, from) - 1), lowerBound(baseT, to) + 1];
    const tailFrom = Math.max(from, (baseT.at(-1) ?? -Infinity) + 1e-9);
    const first = lowerBound(this.#t, tailFrom);
    const start = low < baseT.length ? first : Math.max(0, first - 1);
    const end = lowerBound(this.#t, to) + 1;
    const series = {};
    for (const key of keys) series[key] = this.#column(key, low, high, start, end);
    return { t: [...baseT.slice(low, high), ...this.#t.slice(start, end)], series };
  }

  #column(key, low, high, start, end) {
    const length = Math.max(0, Math.min(high, this.#base.t.length) - low);
    const base = this.#base.series[key];
    const tail = this.#rows[key]?.slice(start, end) ?? new Array(this.#t.slice(start, end).length).fill(null);
    const part = (name) => [...(base?.[name]?.slice(low, high) ?? new Array(length).fill(null)), ...tail];
    return { min: part("min"), max: part("max"), mean: part("mean") };
  }
}

/**
 * A line `{t, min, max, mean}` over [from, to] in at most about `points` points. Points fall into spans of
 * a power of two seconds, counted from the run's start, so that they stay put while time goes on.
 */
export function reduced({ t, min, max, mean }, from, to, points) {
  if (t.length <= points) return { t, min, max, mean };
  const width = 2 ** Math.ceil(Math.log2(Math.max(to - from, 1e-9) / points));
  const out = { t: [], min: [], max: [], mean: [] };
  for (let i = 0; i < t.length;) {
    const span = Math.floor(t[i] / width);
    let end = i + 1;
    while (end < t.length && Math.floor(t[end] / width) === span) end += 1;
    out.t.push((t[i] + t[end - 1]) / 2);
    out.min.push(fold(min, i, end, Math.min));
    out.max.push(fold(max, i, end, Math.max));
    out.mean.push(average(mean, i, end));
    i = end;
  }
  return out;
}

function fold(values, start, end, choose) {
  let result = null;
  for (let i = start; i < end; i += 1)
    if (values[i] !== null) result = result === null ? values[i] : choose(result, values[i]);
  return result;
}

function average(values, start, end) {
  let [sum, known] = [0, 0];
  for (let i = start; i < end; i += 1) {
    if (values[i] === null) continue;
    sum += values[i];
    known += 1;
  }
  return known === 0 ? null : sum / known;
}
