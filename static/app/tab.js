/** The browser tab: how fast, whether live, whether something needs you, without opening it. */

import { number } from "./format.js";
import { t } from "../locale/i18n.js";
import { worst } from "../findings/ranking.js";
import { statusOf } from "./status.js";

const MARKS = { live: "●", ok: "✓", warn: "▲", bad: "✕", unknown: "○" };
const ICONS = { live: "favicon.svg", ok: "favicon-done.svg", warn: "favicon-warn.svg", bad: "favicon-bad.svg", unknown: "favicon-done.svg" };

/** Title and icon tone for an update: "● 42.1 it/s – digits", "✕ killed – digits". */
export function tabOf({ status, findings = [], tiles = {}, name, run }) {
  const { word, tone: byStatus } = statusOf(status);
  const severity = worst(findings);
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
