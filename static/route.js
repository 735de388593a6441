/** The page's address: `#/run/ID`, `#/runs`, or nothing (the newest live run). */

/** `{view: "run", run}`, `{view: "runs"}` or `{view: "home"}` from a location's hash. */
export function parse(hash) {
  const [, view, id] = hash.match(/^#\/(run|runs)(?:\/(.*))?$/) ?? [];
  if (view === "run" && id) return { view, run: decode(id) };
  return { view: view === "runs" ? "runs" : "home" };
}

/** The hash of a run's page. */
export function toRun(id) {
  return `#/run/${encodeURIComponent(id)}`;
}

/** The hash of the list. */
export const TO_RUNS = "#/runs";

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
