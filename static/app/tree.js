/** A value of any shape as a list of names and values. Everything in it is text, and bounded. */

import { h } from "./dom.js";
import { number } from "./format.js";
import { t } from "../locale/i18n.js";

const DEEPEST = 4;
const MOST = 200; // names of one level
const LONGEST = 2_000; // characters of one value

/** A `<dl>` of an object's entries; objects inside it are lists themselves. */
export function tree(value, depth = 0) {
  const entries = Object.entries(value ?? {});
  const rows = entries.slice(0, MOST).map(([name, inner]) => h("div", {}, h("dt", {}, name), h("dd", {}, leaf(inner, depth))));
  if (entries.length > MOST) rows.push(h("div", {}, h("dt", {}, "…"), h("dd", {}, String(entries.length - MOST))));
  return h("dl", { class: "tree" }, ...rows);
}

function leaf(value, depth) {
  if (value === null || value === undefined) return h("span", { class: "none", title: t("not measured") }, "–");
  if (typeof value === "number") return number(value);
  if (typeof value !== "object") return clip(String(value));
  if (Array.isArray(value) || depth >= DEEPEST) return clip(Array.isArray(value) && value.every((one) => typeof one !== "object") ? value.join(" ") : JSON.stringify(value));
  return Object.keys(value).length === 0 ? "{}" : tree(value, depth + 1);
}

function clip(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
