/** The numbers of the tiles over a range of time instead of now: means, made of what the charts hold. Pure. */

import { streamsOf } from "./panels.js";

const OF_RUN = ["steps_per_s", "samples_per_s", "tokens_per_s", "data_share", "step_p50_ms", "step_p95_ms", "step_p99_ms"];
const OF_RANKS = ["rss_mb", "tree_pss_mb", "main_cpu", "workers_cpu"];
const OF_HOSTS = ["cpu_used", "cpu_usable", "memory_limit_mb"];

/** Tiles as the hub sends them, with means over [from, to]; null where nothing was measured there. */
export function tilesOver(tracks, [from, to], now = {}) {
  const mean = (name, key) => meanOf(tracks.get(name), key, from, to);
  const total = (origin, key) => {
    const known = streamsOf(origin, [...tracks.keys()]).map((name) => mean(name, key)).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((a, b) => a + b, 0);
  };
  const gpu = now?.gpu?.map((device) => ({ ...device, ...gpuMeans(tracks.get(`gpu/${device.gpu}`), from, to) })) ?? now?.gpu;
  return {
    ...Object.fromEntries(OF_RUN.map((key) => [key, mean("run", key)])),
    ...Object.fromEntries(OF_RANKS.map((key) => [key, total("proc", key)])),
    ...Object.fromEntries(OF_HOSTS.map((key) => [key, total("host", key)])),
    loss: mean("run", "run_loss"),
    gpu,
  };
}

function gpuMeans(track, from, to) {
  return Object.fromEntries(["gpu_util", "gpu_memory_used_mb"].map((key) => [key, meanOf(track, key, from, to)]));
}

function meanOf(track, key, from, to) {
  if (track === undefined) return null;
  const { t, series } = track.view([key], from, to);
  const known = series[key].mean.filter((value, i) => value !== null && t[i] >= from && t[i] <= to);
  return known.length === 0 ? null : known.reduce((a, b) => a + b, 0) / known.length;
}
