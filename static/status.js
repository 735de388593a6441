/** What a run's status is called, and how it looks. */

/** status → its word and tone ("ok", "warn", "bad", "unknown", "live"). */
const STATUSES = {
  running: { word: "running", tone: "live" },
  finished: { word: "finished", tone: "ok" },
  stalled: { word: "stalled", tone: "bad" },
  crashed: { word: "crashed", tone: "bad" },
  killed: { word: "killed", tone: "bad" },
};

/** `{word, tone}`; a status this page does not know is shown as it came. */
export function statusOf(status) {
  return STATUSES[status] ?? { word: String(status ?? "unknown"), tone: "unknown" };
}

/** Whether data should be coming in. */
export function isLive(status) {
  return status === "running" || status === "stalled";
}
