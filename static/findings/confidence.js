/** How sure a finding is, told by how much was seen of it; what is read from the configuration is certain. Pure. */

import { count } from "../app/format.js";
import { N, t } from "../locale/i18n.js";

const ENOUGH_STEPS = 1_000; // seen over so many at once, the hub itself needs no second look (course.py)
const SOME_STEPS = 100; // own: a tenth of that; medians move little beyond

const WORDS = { certain: N("certain"), high: N("high"), medium: N("medium"), low: N("low") };

/** `{level, word, why}` of a finding. */
export function confidenceOf({ first_step: first, last_step: last }) {
  const steps = Number.isFinite(first) && Number.isFinite(last) ? last - first + 1 : null;
  if (steps === null || steps <= 1) return told("certain", t("an event or a setting that was seen"));
  const level = steps >= ENOUGH_STEPS ? "high" : steps >= SOME_STEPS ? "medium" : "low";
  return told(level, t("seen over {steps} steps", { steps: count(steps) }));
}

function told(level, why) {
  return { level, word: t(WORDS[level]), why };
}
