/** Why a GPU's clocks are held back, read from NVML's bits (nvml.h, nvmlClocksEventReasons). Pure. */

import { N } from "../locale/i18n.js";

/** `[bit, words, harm]`: harm is true where the device is slower than its power limit and load make it. */
const REASONS = [
  [0x40, N("too hot (hardware)"), true],
  [0x20, N("too hot (driver)"), true],
  [0x80, N("power brake"), true],
  [0x8, N("hardware slowdown"), true],
  [0x4, N("at its power limit"), false],
  [0x10, N("sync boost"), false],
  [0x2, N("clocks set by hand"), false],
  [0x100, N("clocks set for a display"), false],
  [0x1, N("idle"), false],
];
const HARMFUL = REASONS.reduce((mask, [bit, , harm]) => (harm ? mask | bit : mask), 0);

/** Whether any of `bits` takes speed; null (not measured) does not. */
export function isThrottled(bits) {
  return bits !== null && (bits & HARMFUL) !== 0;
}

/** Whether the power limit, and nothing worse, holds the clocks: usual at full load, and no fault. */
export function isPowerCapped(bits) {
  return bits !== null && (bits & 0x4) !== 0 && !isThrottled(bits);
}

/** The reasons among `bits`, worst first: `[{words, harm}]`; those we have no words for are left out. */
export function throttleReasons(bits) {
  if (bits === null) return [];
  const found = REASONS.filter(([bit]) => (bits & bit) !== 0);
  // NVML sets the general bit beside the one that says what it is.
  const precise = found.some(([bit, , harm]) => harm && bit !== 0x8);
  return found.filter(([bit]) => bit !== 0x8 || !precise).map(([, words, harm]) => ({ words, harm }));
}
