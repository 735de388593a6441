/** Which charts there are, in which order, and which of the schema's metrics each shows. */

import { CUDA_KEYS, GPU_KEYS } from "../gpu/readings.js";
import { N, t } from "../locale/i18n.js";

/**
 * Charts: `id` is the schema's panel; kind "lines", "stack" or "choose" (one unit at a time); `most` ends
 * the axis, `floating` lets it begin above zero, `outlier` is how far a peak may reach before it is cut,
 * `bare` leaves the unit to the title, `with` is another panel of the schema that is shown in it. Beside the
 * ribbon there are six at a time: waiting for data, which the ribbon shows too, where there is no GPU.
 */
export const PANELS = [
  { id: "ribbon", title: N("Where a step's time goes"), kind: "stack", unit: "ms" },
  { id: "throughput", title: N("Throughput"), kind: "choose", unit: "1/s" },
  { id: "data", title: N("Waiting for data"), kind: "lines", unit: "share", most: 1 },
  { id: "step", title: N("Step time"), kind: "lines", unit: "ms" },
  { id: "memory", title: N("Memory"), kind: "lines", unit: "MB" },
  { id: "cpu", title: N("CPU cores"), kind: "lines", unit: "cores", bare: true, also: ["cpu_usable"] },
  { id: "loss", title: N("Loss"), kind: "choose", unit: "", floating: true, outlier: 25, with: "user" },
  { id: "gpu", title: N("GPU utilisation"), kind: "lines", unit: "%", most: 100, gpu: true },
];

const SHORT = {
  steps_per_s: N("steps"), samples_per_s: N("samples"), tokens_per_s: N("tokens"), data_share: N("share of time"),
  step_p50_ms: N("p50"), step_p95_ms: N("p95"), step_p99_ms: N("p99"), run_loss: N("loss"),
  rss_mb: N("main process RSS"), tree_pss_mb: N("process tree PSS"), memory_limit_mb: N("limit"),
  main_cpu: N("main process"), workers_cpu: N("workers"), cpu_used: N("all"), cpu_usable: N("usable"),
  gpu_util: N("busy"), gpu_memory_used_mb: N("in use"), gpu_memory_total_mb: N("installed"),
};
const LIMITS = new Set(["memory_limit_mb", "cpu_usable", "gpu_memory_total_mb"]);
const STREAMS = new Set(["run", "proc", "host", "gpu", "user"]);
const DEVICE_KEYS = new Set([...GPU_KEYS, ...CUDA_KEYS]);
const MAX_STREAMS = 8; // of one kind in one chart: ranks, hosts or devices

/** The panel's series `{key, origin, label, limit, phase, combine}` in the run's schema, in its order. */
export function metricsOf(panel, schema) {
  const all = schema?.metrics ?? [];
  const shown = all.filter(
    (m) => (m.panel === panel.id || m.panel === panel.with || panel.also?.includes(m.key)) && STREAMS.has(m.origin),
  );
  return shown.map((m) => ({
    key: m.key, origin: m.origin, label: t(SHORT[m.key] ?? m.title), limit: LIMITS.has(m.key),
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
  const own = [...keys].map((key) => ({ key, unit: "", title: key, origin: "user", buckets: "mean", panel: "user" }));
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
  for (const panel of PANELS) {
    for (const metric of metricsOf(panel, schema)) (keys[metric.origin] ??= new Set()).add(metric.key);
  }
  return Object.fromEntries(Object.entries(keys).map(([origin, set]) => [origin, [...set]]));
}
