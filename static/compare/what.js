/** What differs between two runs: said first, since no number means anything without it. */

import { h } from "../app/dom.js";
import { t } from "../locale/i18n.js";
import { icon } from "../app/icons.js";

const SHOWN = 20; // differences listed at once
const MAX_TEXT = 80; // characters of one value

/** The card with what differs. */
export function what({ changed, code }) {
  const list = changed.length > 1 ? [h("ul", { class: "changes" }, ...changed.slice(0, SHOWN).map((change) => h("li", {}, ...difference(change))))] : [];
  const more = changed.length > SHOWN ? [h("p", { class: "label" }, t("and {count} more", { count: changed.length - SHOWN }))] : [];
  const notes = note(changed, code).map((text) => h("p", { class: "label" }, text));
  return h("section", { class: "card what" }, h("p", { class: "headline" }, icon(changed.length === 1 ? "ok" : "info"), ...headline(changed, code)), ...list, ...more, ...notes);
}

function headline(changed, code) {
  if (changed.length === 1) return [h("span", {}, t("Exactly one thing differs:"), " ", ...difference(changed[0]))];
  if (changed.length > 1) return [h("span", {}, t("{count} things differ, so no single one explains the rest.", { count: changed.length }))];
  if (code?.edited) return [h("span", {}, t("The script {name} was edited; nothing else that is recorded differs.", { name: code.name }))];
  return [h("span", {}, t("Nothing that is recorded differs."))];
}

function note(changed, code) {
  if (code?.edited && changed.length > 0) return [t("The script {name} was edited; what else was changed in it is not seen.", { name: code.name })];
  if (changed.length === 0) return [t("Environment variables of your own, data and imported code are not recorded.")];
  return [];
}

/** Name, value before and after, and what follows from it. */
function difference(change) {
  const extras = [...(change.via ? [t("by {option}", { option: change.via })] : []), ...change.with.map((one) => `${one.label} ${shown(one.before)} → ${shown(one.after)}`)];
  const tail = extras.length > 0 ? [h("span", { class: "follows" }, ` (${extras.join(", ")})`)] : [];
  return [h("strong", {}, change.label), " ", h("code", {}, shown(change.before)), " → ", h("code", {}, shown(change.after)), ...tail];
}

function shown(value) {
  const text = value === null || value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}
