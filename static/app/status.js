/** What a run's status is called and how it looks, in the page and in the browser's tab. */

import { N, t } from "../locale/i18n.js";
import { number } from "./format.js";

/** status → its word and tone ("ok", "warn", "bad", "unknown", "live"). */
const STATUSES = {
  running: { word: N("running"), tone: "live" },
  finished: { word: N("finished"), tone: "ok" },
  stalled: { word: N("stalled"), tone: "bad" },
  crashed: { word: N("crashed"), tone: "bad" },
  killed: { word: N("killed"), tone: "bad" },
};

/** `{word, tone}`; a status this page does not know is shown as it came. */
export function statusOf(status) {
  return STATUSES[status] ?? { word: String(status ?? N("unknown")), tone: "unknown" };
}

/** Whether data should be coming in. */
export function isLive(status) {
  return status === "running" || status === "stalled";
}

/** Whether a finding is over. */
export function isOver({ cleared_at_s: over }) {
  return over !== null && over !== undefined;
}

const MARKS = { live: "●", ok: "✓", warn: "▲", bad: "✕", unknown: "○" };
const ICONS = {
  live: "favicon.svg", ok: "favicon-done.svg", warn: "favicon-warn.svg", bad: "favicon-bad.svg",
  unknown: "favicon-done.svg",
};

/** Title and icon tone for an update: "● 42.1 it/s – digits", "✕ killed – digits". */
export function tabOf({ status, findings = [], tiles = {}, name, run }) {
  const { word, tone: byStatus } = statusOf(status);
  const severity = findings.find((finding) => !isOver(finding))?.severity; // the hub sends the gravest first
  const alarm = severity === "critical" ? "bad" : severity === "warning" ? "warn" : "live";
  const tone = byStatus === "live" ? alarm : byStatus;
  const rate = number(tiles?.steps_per_s ?? null);
  const what = byStatus === "live" && rate !== null ? t("{rate} it/s", { rate }) : t(word);
  return { title: `${MARKS[tone]} ${what} – ${name ?? run ?? "torchvitals"}`, icon: ICONS[tone] };
}

/** Show it. */
export function showTab({ title, icon }) {
  if (document.title !== title) document.title = title;
  const link = document.querySelector("link[rel=icon]");
  const href = `static/app/${icon}`;
  if (link.getAttribute("href") !== href) link.setAttribute("href", href);
}

/** The tab of pages that show no single run. */
export const PLAIN_TAB = { title: "torchvitals", icon: "favicon.svg" };
