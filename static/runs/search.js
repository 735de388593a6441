/** Which runs the list shows, and in which order. */

import { isLive } from "../app/status.js";

const TEXTS = ["run", "name", "project", "status", "finding", "note"];

/** Live ones first, the newest of each first. */
export function inOrder(runs) {
  const start = (run) => run.started_unix_s ?? 0;
  return [...runs].sort((a, b) => Number(isLive(b.status)) - Number(isLive(a.status)) || start(b) - start(a));
}

/** Runs that hold every word of `query` somewhere; archived ones only when they are asked for. */
export function chosen(runs, query, archived) {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return runs.filter((run) => (archived || !run.archived) && words.every((word) => holds(run, word)));
}

function holds(run, word) {
  const texts = [...TEXTS.map((key) => run[key]), run.verdict?.text, ...(run.tags ?? [])];
  return texts.some((text) => String(text ?? "").toLowerCase().includes(word));
}

/** Ids to compare, the baseline first: that of their project where it is among them, else the one selected first. */
export function comparable(selected, runs) {
  const ids = [...selected].filter((id) => runs.some((run) => run.run === id));
  const baseline = ids.find((id) => runs.some((run) => run.run === id && run.baseline));
  return baseline === undefined ? ids : [baseline, ...ids.filter((id) => id !== baseline)];
}
