/** What differs between two runs, and what became of what the baseline's findings promised. */

import { h, icon } from "../app/dom.js";
import { hubText, N, t } from "../locale/i18n.js";
import { times } from "./measured.js";

const SHOWN = 20; // differences listed at once
const MAX_TEXT = 80; // characters of one value

/** The card with what differs. */
export function what({ changed, code }) {
  const list =
    changed.length > 1
      ? [h("ul", { class: "changes" }, ...changed.slice(0, SHOWN).map((change) => h("li", {}, ...difference(change))))]
      : [];
  const more =
    changed.length > SHOWN
      ? [h("p", { class: "label" }, t("and {count} more", { count: changed.length - SHOWN }))]
      : [];
  const notes = note(changed, code).map((text) => h("p", { class: "label" }, text));
  return h(
    "section", { class: "card what" },
    h("p", { class: "headline" }, icon(changed.length === 1 ? "ok" : "info"), ...headline(changed, code)), ...list,
    ...more, ...notes,
  );
}

function headline(changed, code) {
  if (changed.length === 1) return [h("span", {}, t("Exactly one thing differs:"), " ", ...difference(changed[0]))];
  if (changed.length > 1)
    return [h("span", {}, t("{count} things differ, so no single one explains the rest.", { count: changed.length }))];
  if (code?.edited)
    return [
      h("span", {}, t("The script {name} was edited; nothing else that is recorded differs.", { name: code.name })),
    ];
  return [h("span", {}, t("Nothing that is recorded differs."))];
}

function note(changed, code) {
  if (code?.edited && changed.length > 0)
    return [t("The script {name} was edited; what else was changed in it is not seen.", { name: code.name })];
  if (changed.length === 0) return [t("Environment variables of your own, data and imported code are not recorded.")];
  return [];
}

/** Name, value before and after, and what follows from it. */
function difference(change) {
  const extras = [
    ...(change.via ? [t("by {option}", { option: change.via })] : []),
    ...change.with.map((one) => `${one.label} ${shown(one.before)} → ${shown(one.after)}`),
  ];
  const tail = extras.length > 0 ? [h("span", { class: "follows" }, ` (${extras.join(", ")})`)] : [];
  return [
    h("strong", {}, change.label), " ", h("code", {}, shown(change.before)), " → ",
    h("code", {}, shown(change.after)), ...tail,
  ];
}

function shown(value) {
  const text = value === null || value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}

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
  const table = h(
    "table", {}, h("caption", { class: "offscreen" }, t("What was promised, and what came of it")), head,
    h("tbody", {}, ...predictions.map(row)),
  );
  return h("section", { class: "card promises" }, h("h2", {}, t("What was promised, and what came of it")), table);
}

function row(promise) {
  const [sign, word, meaning] = WORDS[promise.verdict] ?? ["unknown", promise.verdict, ""];
  const together =
    promise.together.length > 0
      ? [h("span", { class: "label" }, t("together with {codes}", { codes: promise.together.join(", ") }))]
      : [];
  const cause = hubText(promise.i18n?.cause, promise.cause ?? "");
  const finding = h(
    "th", { scope: "row" }, h("span", { class: "title" }, hubText(promise.i18n?.title, promise.title)),
    h("span", { class: "label" }, cause),
  );
  const verdict = h(
    "span", { class: "word", "data-tone": sign, title: meaning === "" ? "" : t(meaning) }, icon(sign),
    meaning === "" ? word : t(word),
  );
  return h(
    "tr", {}, finding, h("td", { class: "number" }, factor(promise.promised)),
    h("td", { class: "number" }, factor(promise.reached)), h("td", {}, verdict, ...together),
  );
}

function factor(value) {
  return value === null ? "–" : `${times(value)}×`;
}
