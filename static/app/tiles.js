/** The newest numbers, large. */

import { streamsOf } from "../charts/panels.js";
import { N, t } from "../locale/i18n.js";
import { h, setText, setValue } from "./dom.js";
import { finite, number, quantity, withUnit } from "./format.js";

const RATE = (key) => (tiles) => ({ ...quantity(finite(tiles[key]), ""), unit: "" });
const TIME = (key) => (tiles) => quantity(finite(tiles[key]), "ms");

/** id, label and what is shown: `{text, unit, note}`; text null is "not measured". */
const TILES = [
  ["steps_per_s", N("steps/s"), RATE("steps_per_s")],
  ["samples_per_s", N("samples/s"), RATE("samples_per_s")],
  ["tokens_per_s", N("tokens/s"), RATE("tokens_per_s")],
  ["data_share", N("data wait"), (tiles) => quantity(finite(tiles.data_share), "share")],
  ["step_p50_ms", N("step p50"), TIME("step_p50_ms")],
  ["step_p95_ms", N("step p95"), TIME("step_p95_ms")],
  ["step_p99_ms", N("step p99"), TIME("step_p99_ms")],
  ["loss", N("loss"), (tiles) => ({ text: number(tiles.loss ?? null), unit: "" })],
  ["memory", N("memory"), memory],
  ["cpu", N("CPU"), cpu],
  ["gpu", N("GPU"), gpu],
];

export class Tiles {
  element = h("section", { class: "tiles", "aria-labelledby": "tiles-title" });
  #parts = new Map();

  constructor() {
    const list = h("dl");
    for (const [id, label] of TILES) {
      const [text, unit, note] = [
        h("span", { class: "number" }), h("span", { class: "unit" }), h("span", { class: "note" }),
      ];
      this.#parts.set(id, { text, unit, note });
      list.append(h("div", { class: "tile", "data-tile": id }, h("dt", {}, t(label)), h("dd", {}, text, unit, note)));
    }
    this.element.append(h("h2", { id: "tiles-title", class: "offscreen" }, t("Now")), list);
    this.update({});
  }

  update(tiles) {
    for (const [id, , of] of TILES) {
      const { text, unit, note } = of(tiles ?? {});
      const parts = this.#parts.get(id);
      setValue(parts.text, text);
      setText(parts.unit, text === null ? "" : unit ?? "");
      setText(parts.note, note ?? "");
      parts.text.closest(".tile").classList.toggle("alarm", text === "NaN" || text === "∞");
    }
  }
}

function memory({ rss_mb: rss = null, tree_pss_mb: tree = null, memory_limit_mb: limit = null }) {
  const note = limit === null ? "" : t("of {limit}", { limit: withUnit(limit, "MB") });
  return { ...quantity(tree ?? rss, "MB"), note };
}

function cpu({ main_cpu: main = null, workers_cpu: workers = null, cpu_used: used = null, cpu_usable: usable = null }) {
  const own = main === null ? null : main + (workers ?? 0);
  const cores = (value) => quantity(value, "cores").text;
  const others = used === null || own === null ? "" : t(" · all {cores}", { cores: cores(used) });
  return {
    text: cores(own ?? used),
    unit: usable === null ? t("cores") : t("of {limit}", { limit: number(usable) }),
    note: own === null ? "" : t("main {cores}", { cores: cores(main) }) + others,
  };
}

function gpu({ gpu: devices = undefined }) {
  if (devices === undefined) return { text: null };
  if (devices === null || devices.length === 0) return { text: t("no GPU"), unit: "" };
  const busy = devices.map((device) => finite(device.gpu_util ?? device.util)).filter((value) => value !== null);
  const text = busy.length === 0 ? null : number(busy.reduce((a, b) => a + b, 0) / busy.length);
  const used = finite(devices[0].gpu_memory_used_mb);
  const total = finite(devices[0].gpu_memory_total_mb);
  const note =
    used === null ? "" : t("{used} of {limit}", { used: withUnit(used, "MB"), limit: withUnit(total, "MB") ?? "–" });
  return { text, unit: devices.length > 1 ? t("% of {devices}", { devices: devices.length }) : "%", note };
}

const OF_RUN = [
  "steps_per_s", "samples_per_s", "tokens_per_s", "data_share", "step_p50_ms", "step_p95_ms", "step_p99_ms",
];
const OF_RANKS = ["rss_mb", "tree_pss_mb", "main_cpu", "workers_cpu"];
const OF_HOSTS = ["cpu_used", "cpu_usable", "memory_limit_mb"];

const COMBINE = {
  mean: (values) => values.reduce((a, b) => a + b, 0) / values.length,
  sum: (values) => values.reduce((a, b) => a + b, 0),
  max: (values) => Math.max(...values),
  min: (values) => Math.min(...values),
  last: (values) => values.at(-1),
};

/** Several ranks' or hosts' values as one, by the rule that the run's schema has for the metric, as in the report. */
function combined(schema, key, values) {
  const rule = schema?.metrics?.find((metric) => metric.key === key)?.ranks ?? "sum";
  return values.length === 0 ? null : COMBINE[rule](values);
}

/** Tiles as the hub sends them, with means over [from, to]; null where nothing was measured there. */
export function tilesOver(tracks, [from, to], now = {}, schema = null) {
  const mean = (name, key) => meanOf(tracks.get(name), key, from, to);
  const total = (origin, key) => {
    const known = streamsOf(origin, [...tracks.keys()])
      .map((name) => mean(name, key))
      .filter((value) => value !== null);
    return combined(schema, key, known);
  };
  const gpu =
    now?.gpu?.map((device) => ({ ...device, ...gpuMeans(tracks.get(`gpu/${device.gpu}`), from, to) })) ?? now?.gpu;
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
