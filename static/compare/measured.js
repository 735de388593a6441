/** What was measured of both runs: the speed-up, phase by phase, and other numbers. */

import { h, icon } from "../app/dom.js";
import { duration, number, percent, withUnit } from "../app/format.js";
import { phaseColour } from "../app/theme.js";
import { N, t, word } from "../locale/i18n.js";

const WORDS = {
  faster: ["ok", N("faster")], slower: ["warning", N("slower")],
  "no difference": ["info", N("no difference that can be told from chance")], unknown: ["unknown", N("unknown")],
};
const MARKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];
const LEAST_SHARE = 0.02; // of time lost to others that is worth a line
const TOO_BUSY = 0.9; // of time lost to others at which the hub gives no interval

/** The card with the speed-up. */
export function speed({ speed: found }) {
  const [sign, word] = WORDS[found.verdict] ?? WORDS.unknown;
  const title = h("h2", {}, t("Speed-up"));
  if (found.speedup === null)
    return h("section", { class: "card speedup" }, title, h("p", {}, t("One of the runs has no steps to compare.")));
  const unit = found.unit === "samples" ? t("samples/s") : t("steps/s");
  const rates = h(
    "p", { class: "label" }, `${number(found.baseline_per_s)} → ${number(found.candidate_per_s)} ${unit}`,
  );
  const head = h(
    "p", { class: "big" }, h("span", { class: "number" }, `${times(found.speedup)}×`),
    h("span", { class: "word", "data-tone": sign }, icon(sign), t(word)),
  );
  return h(
    "section", { class: "card speedup" }, title, head, rates,
    ...(found.low === null ? [h("p", { class: "label" }, why(found))] : drawn(found)), ...busy(found),
  );
}

/** Two digits behind the point up to ten, fewer beyond. */
export function times(value) {
  return value < 10 ? value.toFixed(2) : number(value);
}

function why({ lost_share: lost }) {
  return Math.max(...lost) >= TOO_BUSY
    ? t("The machine was too busy for an interval.")
    : t("Too few steps for an interval.");
}

function drawn(found) {
  const { at, marks } = scale(found);
  const place = (element, from, to = null) => {
    element.style.left = `${at(from)}%`;
    if (to !== null) element.style.width = `${Math.max(at(to) - at(from), 0.4)}%`;
    return element;
  };
  const ticks = marks.map((mark) =>
    place(h("span", { class: mark === 1 ? "tick one" : "tick" }, h("span", {}, `${mark}×`)), mark),
  );
  const parts = [
    place(h("span", { class: "bar" }), found.low, found.high), place(h("span", { class: "dot" }), found.speedup),
  ];
  const text = t("95 % interval: {low} to {high}", { low: `${times(found.low)}×`, high: `${times(found.high)}×` });
  return [
    h("div", { class: "interval", role: "img", "aria-label": text }, ...ticks, ...parts),
    h("p", { class: "label" }, text),
  ];
}

/** `at(ratio)` → percent of the drawing's width, on a logarithmic axis that holds the interval and 1; and its marks. */
export function scale({ low, high }) {
  const [from, to] = [Math.min(low / 1.15, 0.8), Math.max(high * 1.15, 1.25)].map(Math.log);
  const at = (ratio) => (100 * (Math.log(ratio) - from)) / (to - from);
  const inside = MARKS.filter((mark) => at(mark) >= 3 && at(mark) <= 97);
  return { at, marks: inside };
}

function busy({ lost_share: lost, low }) {
  const names = [t("baseline"), t("candidate")];
  const told = lost
    .map((share, i) => [share, names[i]])
    .filter(([share]) => share >= LEAST_SHARE)
    .map(([share, name]) => `${name} ${percent(share)} %`);
  if (told.length === 0) return [];
  const params = { shares: told.join(", ") };
  const text =
    low === null
      ? t("Time that other processes may have cost: {shares}.", params)
      : t("Time that other processes may have cost: {shares}. The interval allows for it.", params);
  return [h("p", { class: "label busy" }, text)];
}

const LEAST_MS = 0.02; // a phase below this on both sides is left out

/** The card with the bars; null where no phase was measured. */
export function phases({ phases: found, baseline, candidate }, theme) {
  const rows = Object.entries(found).filter(
    ([, pair]) => pair.every((ms) => ms !== null) && Math.max(...pair) >= LEAST_MS,
  );
  if (rows.length === 0) return null;
  const most = Math.max(...rows.flatMap(([, pair]) => pair));
  const list = h("dl", { class: "bars" }, ...rows.map(([phase, pair]) => bars(phase, pair, most, theme)));
  const legend = h(
    "p", { class: "label legend-of" }, h("span", { class: "key before" }), name(baseline),
    h("span", { class: "key after" }), name(candidate),
  );
  return h(
    "section", { class: "card phase-bars" }, h("h2", {}, t("Mean time of a step, phase by phase")), legend, list,
  );
}

function bars(phase, [before, after], most, theme) {
  const bar = (ms, side) => {
    const drawn = h("span", { class: `bar ${side}` });
    drawn.style.width = `${Math.max((100 * ms) / most, 0.3)}%`;
    drawn.style.setProperty("--phase", phaseColour(phase, theme));
    return h("dd", {}, h("span", { class: "track" }, drawn), h("span", { class: "number" }, withUnit(ms, "ms")));
  };
  return h("div", {}, h("dt", {}, word(phase)), bar(before, "before"), bar(after, "after"));
}

function name({ name: given, run }) {
  return String(given ?? run);
}

const MEMORY = [
  ["rss_mb", N("memory, peak")], ["gpu_memory_used_mb", N("GPU memory, peak")],
  ["cuda_allocated_mb", N("CUDA memory allocated, peak")], ["cuda_reserved_mb", N("CUDA memory reserved, peak")],
];

/** The card with the table. */
export function numbers(pair) {
  const rows = [
    ...["p50", "p95", "p99"].map((key) =>
      line(
        t("step time {quantile}", { quantile: key }),
        pair.step_ms.map((side) => side[key]),
        (ms) => withUnit(ms, "ms"),
      ),
    ),
    ...MEMORY.filter(([key]) => pair.memory[key]?.some((mb) => mb !== null)).map(([key, text]) =>
      line(t(text), pair.memory[key], (mb) => withUnit(mb, "MB")),
    ),
    ...(pair.loss_at === null ? [] : [line(where(pair.loss_at), pair.loss_at.loss, number)]),
    line(t("steps"), [pair.baseline.steps, pair.candidate.steps], (steps) => number(steps), false),
  ];
  const heads = ["", t("baseline"), t("candidate"), t("change")].map((text) => h("th", { scope: "col" }, text));
  const table = h(
    "table", {}, h("caption", { class: "offscreen" }, t("Numbers")), h("thead", {}, h("tr", {}, ...heads)),
    h("tbody", {}, ...rows),
  );
  return h("section", { class: "card numbers" }, h("h2", {}, t("Numbers")), table);
}

function where(at) {
  return at.step !== undefined
    ? t("loss at step {step}", { step: number(at.step) })
    : t("loss after {time}", { time: duration(at.time_s) });
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
