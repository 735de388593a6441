/** The page's address: `#/run/ID`, `#/runs`, `#/compare/A,B`, or nothing (the newest live run). */

/**
 * `{view: "run", run}`, `{view: "runs"}`, `{view: "compare", runs, align}` or `{view: "home"}` from a location's
 * hash.
 */
export function parse(hash) {
  const [, view, id] = hash.match(/^#\/(run|runs|compare)(?:\/(.*))?$/) ?? [];
  if (view === "run" && id) return { view, run: decode(id) };
  if (view === "compare" && id) {
    const [runs, align] = id.split("/");
    return {
      view,
      runs: runs
        .split(",")
        .filter((run) => run !== "")
        .map(decode),
      align: align === "time" ? "time" : "step",
    };
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

const SOON_MS = 250; // the address follows a moving range at this distance

/** `{range: [from, to] | null, span: seconds | null, finding: code | null}` from a location's hash. */
export function placeOf(hash) {
  const query = new URLSearchParams(hash.split("?")[1] ?? "");
  const number = (name) => (query.has(name) && query.get(name) !== "" ? Number(query.get(name)) : NaN);
  const [from, to, last] = [number("from"), number("to"), number("last")];
  return {
    range: from >= 0 && to > from && Number.isFinite(to) ? [from, to] : null,
    span: last > 0 && Number.isFinite(last) ? last : null,
    finding: query.get("finding")?.slice(0, 64) || null,
  };
}

/** The hash of a place on a run's page. */
export function toPlace(run, { range = null, span = null, finding = null }) {
  const query = new URLSearchParams();
  if (range !== null) {
    query.set("from", shortly(range[0]));
    query.set("to", shortly(range[1]));
  } else if (Number.isFinite(span)) query.set("last", shortly(span));
  if (finding !== null) query.set("finding", finding);
  return toRun(run) + (query.size > 0 ? `?${query}` : "");
}

/** Keeps the address where the viewer is, so that it can be sent to somebody or reloaded. */
export class Place {
  #run;
  #range;
  #selection;
  #timer = null;

  constructor(run, range, selection) {
    this.#run = run;
    this.#range = range;
    this.#selection = selection;
  }

  connect() {
    this.#range.connect(this.#moved);
    this.#selection.connect(this.#soon);
  }

  disconnect() {
    this.#range.disconnect(this.#moved);
    this.#selection.disconnect(this.#soon);
    clearTimeout(this.#timer);
  }

  #moved = (moved) => moved && this.#soon();

  #soon = () => {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#write, SOON_MS);
  };

  #write = () => {
    const { following, bounds, span } = this.#range;
    const place = {
      range: following ? null : bounds, span: following ? span : null, finding: this.#selection.finding?.code ?? null,
    };
    history.replaceState(null, "", toPlace(this.#run, place));
  };
}

function shortly(seconds) {
  return String(Number(seconds.toFixed(2)));
}
