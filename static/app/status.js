/** What a run's status is called, and how it looks. */

import { N } from "../locale/i18n.js";

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
