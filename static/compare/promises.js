/** What the baseline's findings promised, what came of it, and one word for it. */

import { times } from "./speed.js";
import { h } from "../app/dom.js";
import { hubText, N, t } from "../locale/i18n.js";
import { icon } from "../app/icons.js";

const WORDS = {
  confirmed: ["ok", N("confirmed"), N("at least 0.85 of the promise was reached")],
  "less than promised": ["warning", N("less than promised"), N("faster, by less than 0.85 of the promise")],
  refuted: ["critical", N("refuted"), N("no faster")],
  "cannot tell": ["unknown", N("cannot tell"), N("the interval holds the promise kept and not kept")],
  "not followed": ["info", N("not followed"), N("the finding stands in the candidate too")],
  "not checked": ["unknown", N("not checked"), N("the candidate could not tell whether it stands")],
  gone: ["ok", N("gone"), N("it promised no speed, and no longer stands")],
};
const HEADS = [N("Finding of the baseline"), N("Promised"), N("Reached"), N("Verdict")];

/** The card with the promises; null where the baseline had no finding. */
export function promises({ predictions }) {
  if (predictions.length === 0) return null;
  const head = h("thead", {}, h("tr", {}, ...HEADS.map((text) => h("th", { scope: "col" }, t(text)))));
  const table = h("table", {}, h("caption", { class: "offscreen" }, t("What was promised, and what came of it")), head, h("tbody", {}, ...predictions.map(row)));
  return h("section", { class: "card promises" }, h("h2", {}, t("What was promised, and what came of it")), table);
}

function row(promise) {
  const [sign, word, meaning] = WORDS[promise.verdict] ?? ["unknown", promise.verdict, ""];
  const together = promise.together.length > 0 ? [h("span", { class: "label" }, t("together with {codes}", { codes: promise.together.join(", ") }))] : [];
  const cause = hubText(promise.i18n?.cause, promise.cause ?? "");
  const finding = h("th", { scope: "row" }, h("span", { class: "title" }, hubText(promise.i18n?.title, promise.title)), h("span", { class: "label" }, cause));
  const verdict = h("span", { class: "word", "data-tone": sign, title: meaning === "" ? "" : t(meaning) }, icon(sign), meaning === "" ? word : t(word));
  return h("tr", {}, finding, h("td", { class: "number" }, factor(promise.promised)), h("td", { class: "number" }, factor(promise.reached)), h("td", {}, verdict, ...together));
}

function factor(value) {
  return value === null ? "–" : `${times(value)}×`;
}
