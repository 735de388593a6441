/** The charts that came with the run's schema, and which of its metrics and streams each shows. */

import { CUDA_KEYS, GPU_KEYS } from "../gpu/readings.js";
import { word } from "../locale/i18n.js";

const DEVICE_KEYS = new Set([...GPU_KEYS, ...CUDA_KEYS]);
const MAX_STREAMS = 8; // of one kind in one chart: ranks, hosts or devices

/**
 * The panel's series `{key, origin, label, limit, phase, combine}`, as far as the run's schema has them: those that
 * the panel names (see monitor/panels.py), and the user's own where it takes them.
 */
export function metricsOf(panel, schema) {
  const metrics = schema?.metrics ?? [];
  const byKey = new Map(metrics.map((metric) => [metric.key, metric]));
  const named = panel.series.map((series) => ({ ...byKey.get(series.key), ...series }));
  const own = panel.user ? metrics.filter(({ origin }) => origin === "user") : [];
  return [...named.filter(({ key }) => byKey.has(key)), ...own].map((m) => ({
    key: m.key, origin: m.origin, label: word(m.label || m.title), limit: m.limit ?? false,
    phase: panel.kind === "stack" ? m.title : null, combine: m.buckets,
  }));
}

/** The schema with the numbers of the user's own that `rows` brings; the same object when there are none. */
export function grown(schema, rows) {
  const known = new Set(schema?.metrics?.map(({ key }) => key));
  const streams = Object.entries(rows).filter(([name]) => name.startsWith("user/"));
  const keys = new Set(
    streams.flatMap(([, columns]) => Object.keys(columns)).filter((key) => key !== "t_s" && !known.has(key)),
  );
  if (keys.size === 0 || schema === null) return schema;
  const own = [...keys].map((key) => ({ key, unit: "", title: key, origin: "user", buckets: "mean" }));
  return { ...schema, metrics: [...schema.metrics, ...own] };
}

/** Streams of an origin among `names`: "proc" → ["proc/0", "proc/1"], in natural order, at most `most`. */
export function streamsOf(origin, names, most = MAX_STREAMS) {
  const found = names.filter((name) => name === origin || name.startsWith(`${origin}/`));
  return found.sort((a, b) => a.localeCompare(b, "en", { numeric: true })).slice(0, most);
}

/** Keys that charts and rows of GPUs need, per origin: what is asked of the hub and nothing more. */
export function keysByOrigin(schema) {
  const keys = {};
  for (const { key, origin } of schema?.metrics ?? []) if (DEVICE_KEYS.has(key)) (keys[origin] ??= new Set()).add(key);
  for (const panel of schema?.panels ?? []) {
    for (const metric of metricsOf(panel, schema)) (keys[metric.origin] ??= new Set()).add(metric.key);
  }
  return Object.fromEntries(Object.entries(keys).map(([origin, set]) => [origin, [...set]]));
}
