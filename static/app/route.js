/** The page's address: `#/run/ID`, `#/runs`, `#/compare/A,B`, or nothing (the newest live run). */

/** `{view: "run", run}`, `{view: "runs"}`, `{view: "compare", runs, align}` or `{view: "home"}` from a location's hash. */
export function parse(hash) {
  const [, view, id] = hash.match(/^#\/(run|runs|compare)(?:\/(.*))?$/) ?? [];
  if (view === "run" && id) return { view, run: decode(id) };
  if (view === "compare" && id) {
    const [runs, align] = id.split("/");
    return { view, runs: runs.split(",").filter((run) => run !== "").map(decode), align: align === "time" ? "time" : "step" };
  }
  return { view: view === "runs" ? "runs" : "home" };
}

/** The hash of a run's page. */
export function toRun(id) {
  return `#/run/${encodeURIComponent(id)}`;
}

/** The hash of a comparison; the first run is the baseline. `align`: "step" or "time". */
export function toCompare(runs, align = "step") {
  return `#/compare/${runs.map(encodeURIComponent).join(",")}${align === "time" ? "/time" : ""}`;
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
