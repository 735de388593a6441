/** How much faster, drawn with its interval, and whether chance explains it. */

import { h } from "../app/dom.js";
import { number, percent } from "../app/format.js";
import { N, t } from "../locale/i18n.js";
import { icon } from "../app/icons.js";

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
  if (found.speedup === null) return h("section", { class: "card speedup" }, title, h("p", {}, t("One of the runs has no steps to compare.")));
  const unit = found.unit === "samples" ? t("samples/s") : t("steps/s");
  const rates = h("p", { class: "label" }, `${number(found.baseline_per_s)} → ${number(found.candidate_per_s)} ${unit}`);
  const head = h("p", { class: "big" }, h("span", { class: "number" }, `${times(found.speedup)}×`), h("span", { class: "word", "data-tone": sign }, icon(sign), t(word)));
  return h("section", { class: "card speedup" }, title, head, rates, ...(found.low === null ? [h("p", { class: "label" }, why(found))] : drawn(found)), ...busy(found));
}

/** Two digits behind the point up to ten, fewer beyond. */
export function times(value) {
  return value < 10 ? value.toFixed(2) : number(value);
}

function why({ lost_share: lost }) {
  return Math.max(...lost) >= TOO_BUSY ? t("The machine was too busy for an interval.") : t("Too few steps for an interval.");
}

function drawn(found) {
  const { at, marks } = scale(found);
  const place = (element, from, to = null) => {
    element.style.left = `${at(from)}%`;
    if (to !== null) element.style.width = `${Math.max(at(to) - at(from), 0.4)}%`;
    return element;
  };
  const ticks = marks.map((mark) => place(h("span", { class: mark === 1 ? "tick one" : "tick" }, h("span", {}, `${mark}×`)), mark));
  const parts = [place(h("span", { class: "bar" }), found.low, found.high), place(h("span", { class: "dot" }), found.speedup)];
  const text = t("95 % interval: {low} to {high}", { low: `${times(found.low)}×`, high: `${times(found.high)}×` });
  return [h("div", { class: "interval", role: "img", "aria-label": text }, ...ticks, ...parts), h("p", { class: "label" }, text)];
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
  const told = lost.map((share, i) => [share, names[i]]).filter(([share]) => share >= LEAST_SHARE).map(([share, name]) => `${name} ${percent(share)} %`);
  if (told.length === 0) return [];
  const params = { shares: told.join(", ") };
  const text = low === null ? t("Time that other processes may have cost: {shares}.", params) : t("Time that other processes may have cost: {shares}. The interval allows for it.", params);
  return [h("p", { class: "label busy" }, text)];
}
