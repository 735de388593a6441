/** Numbers of both runs in a table: step times, memory, and the loss where both have been. */

import { h } from "../app/dom.js";
import { duration, number, percent, withUnit } from "../app/format.js";
import { N, t } from "../locale/i18n.js";

const MEMORY = [
  ["rss_mb", N("memory, peak")], ["gpu_memory_used_mb", N("GPU memory, peak")],
  ["cuda_allocated_mb", N("CUDA memory allocated, peak")], ["cuda_reserved_mb", N("CUDA memory reserved, peak")],
];

/** The card with the table. */
export function numbers(pair) {
  const rows = [
    ...["p50", "p95", "p99"].map((key) => line(t("step time {quantile}", { quantile: key }), pair.step_ms.map((side) => side[key]), (ms) => withUnit(ms, "ms"))),
    ...MEMORY.filter(([key]) => pair.memory[key]?.some((mb) => mb !== null)).map(([key, text]) => line(t(text), pair.memory[key], (mb) => withUnit(mb, "MB"))),
    ...(pair.loss_at === null ? [] : [line(where(pair.loss_at), pair.loss_at.loss, number)]),
    line(t("steps"), [pair.baseline.steps, pair.candidate.steps], (steps) => number(steps), false),
  ];
  const heads = ["", t("baseline"), t("candidate"), t("change")].map((text) => h("th", { scope: "col" }, text));
  const table = h("table", {}, h("caption", { class: "offscreen" }, t("Numbers")), h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows));
  return h("section", { class: "card numbers" }, h("h2", {}, t("Numbers")), table);
}

function where(at) {
  return at.step !== undefined ? t("loss at step {step}", { step: number(at.step) }) : t("loss after {time}", { time: duration(at.time_s) });
}

function line(name, [before, after], format, change = true) {
  const cell = (value) => h("td", { class: "number" }, value === null || value === undefined ? "–" : format(value));
  const told = change && before && after !== null && after !== undefined ? signed(after / before - 1) : "";
  return h("tr", {}, h("th", { scope: "row" }, name), cell(before), cell(after), h("td", { class: "number" }, told));
}

/** A relative change as people read it: "+12 %", "−3.4 %", "=" for next to none. */
export function signed(share) {
  if (!Number.isFinite(share)) return "";
  if (Math.abs(share) < 5e-4) return "=";
  const text = percent(Math.abs(share));
  return `${share < 0 ? "−" : "+"}${text}\u202f%`;
}
