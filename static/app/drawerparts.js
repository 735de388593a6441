/** What the drawer holds: a function for each tab, `(source, signal) → elements`. Loaded when it is opened. */

import { t } from "../locale/i18n.js";
import { read, runPath } from "../net/api.js";
import { h } from "./dom.js";
import { downloads, rows } from "./drawertables.js";
import { moment, number, timeText } from "./format.js";

const MOST_EVENTS = 500; // the newest; all are in the downloads
const MOST_STACKS = 40;
const ABOUT = ["argv", "cwd", "python", "host", "hosts", "world_size"]; // of the run's meta, beside its config

export const DRAWER = { config, facts, stacks, events, rows, downloads };

function config({ snapshot: { meta = {} } }) {
  const about = Object.fromEntries(
    ABOUT.filter((key) => meta[key] !== undefined && meta[key] !== null).map((key) => [key, meta[key]]),
  );
  const own =
    Object.keys(meta.config ?? {}).length > 0
      ? [tree(meta.config)]
      : [h("p", { class: "nothing" }, t("This run was given no configuration: attach(config={…}) keeps one with it."))];
  return [
    h("h3", {}, t("Given to attach")), ...own, h("h3", {}, t("Process")), tree(about),
    h("h3", {}, t("Started")), h("p", {}, moment(meta.started_unix_s ?? null) ?? "–"),
  ];
}

async function facts({ run }, signal) {
  const { body } = await read(runPath(run), { signal });
  const scopes = Object.entries(body.facts ?? {});
  if (scopes.length === 0) return [h("p", { class: "nothing" }, t("No facts yet."))];
  return scopes.flatMap(([scope, found]) => [h("h3", {}, scope), tree(found)]);
}

async function stacks(source, signal) {
  const found = await newest(source, signal, MOST_STACKS, "stack,stall,other_stack");
  const told = found.filter(({ threads, frames }) => threads?.length > 0 || frames?.length > 0);
  if (told.length === 0)
    return [
      h(
        "p",
        { class: "nothing" },
        t("No stacks were taken: that happens when a run stalls, or much time lies outside its phases."),
      ),
    ];
  return told.flatMap((event) => [
    h("h3", {}, when(source, event), ` · ${event.kind} · rank ${event.rank ?? 0}`), ...threadsOf(event),
  ]);
}

function threadsOf({ threads, frames }) {
  const all = threads?.length > 0 ? threads : [{ name: "", frames }];
  return all.map(({ name, frames: lines = [] }) =>
    h("pre", { tabindex: "0" }, [name, ...lines.map(frameText)].filter(Boolean).join("\n")));
}

function frameText({ file, line, func, source, count }) {
  return `  ${file ?? "?"}:${line ?? "?"} ${func ?? ""}${source ? `  ${source}` : ""}${count ? `  × ${count}` : ""}`;
}

async function events(source, signal) {
  const found = await newest(source, signal, MOST_EVENTS);
  if (found.length === 0) return [h("p", { class: "nothing" }, t("No events yet."))];
  const row = (event) =>
    h(
      "tr", {}, h("td", {}, when(source, event)), h("th", { scope: "row" }, h("code", {}, String(event.kind))),
      h("td", { class: "sentence" }, restOf(event)),
    );
  const heads = [t("Time"), t("Event"), t("What it says")].map((text) => h("th", { scope: "col" }, text));
  return [h("div", { class: "table-frame", tabindex: "0", role: "region", "aria-label": t("Events") },
    h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...found.map(row))))];
}

async function newest({ run }, signal, limit, kinds = "") {
  const query = { newest: 1, limit, ...(kinds && { kinds }) };
  const { body } = await read(`${runPath(run)}/events`, { signal, query });
  return [...(body.events ?? [])].reverse();
}

/** The moment of an event: since the run began, and in the viewer's zone. */
function when({ update }, { t_s: at }) {
  if (!Number.isFinite(at)) return "–";
  const start = update.started_unix_s;
  return Number.isFinite(start) ? `${timeText(at, 1)} (${moment(start + at)})` : timeText(at, 1);
}

function restOf(event) {
  const { id, kind, t_s: at, ...rest } = event;
  const text = JSON.stringify(rest);
  return text.length > 400 ? `${text.slice(0, 400)}…` : text;
}

const DEEPEST = 4;
const MOST = 200; // names of one level
const LONGEST = 2_000; // characters of one value

/** A `<dl>` of an object's entries; objects inside it are lists themselves. */
export function tree(value, depth = 0) {
  const entries = Object.entries(value ?? {});
  const rows = entries
    .slice(0, MOST)
    .map(([name, inner]) => h("div", {}, h("dt", {}, name), h("dd", {}, leaf(inner, depth))));
  if (entries.length > MOST) rows.push(h("div", {}, h("dt", {}, "…"), h("dd", {}, String(entries.length - MOST))));
  return h("dl", { class: "tree" }, ...rows);
}

function leaf(value, depth) {
  if (value === null || value === undefined) return h("span", { class: "none", title: t("not measured") }, "–");
  if (typeof value === "number") return number(value);
  if (typeof value !== "object") return clip(String(value));
  if (Array.isArray(value) || depth >= DEEPEST)
    return clip(
      Array.isArray(value) && value.every((one) => typeof one !== "object") ? value.join(" ") : JSON.stringify(value),
    );
  return Object.keys(value).length === 0 ? "{}" : tree(value, depth + 1);
}

function clip(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
