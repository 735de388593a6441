/** How long to wait before the next try: doubling, bounded, and spread so that tabs do not march in step. */

const FIRST_MS = 400;
const LONGEST_MS = 10_000;
const SPREAD = 0.25; // share of the wait that is random, either way

/** Waiting time in ms before try number `tries` (from 0). `random` gives 0 to 1. */
export function waitMs(tries, random = Math.random) {
  const base = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(tries, 10));
  return Math.round(base * (1 + SPREAD * (2 * random() - 1)));
}
