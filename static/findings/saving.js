/** What is left of a run, and what removing a finding would save of it. Only where it is known. Pure. */

import { duration, finite } from "../app/format.js";
import { t } from "../locale/i18n.js";
import { isCleared, ranked } from "./ranking.js";
import { isLive } from "../app/status.js";

const LEAST_STEPS = 20; // before that many the rate is the start-up's
const LEAST_S = 60; // less than a minute is not worth a sentence

/** Seconds until the last step, at the rate of the whole run so far; null unless the number of steps is known. */
export function remainingS({ status, steps, plan_steps: planned, now_s: now }) {
  if (!isLive(status) || finite(planned) === null || finite(now) === null || !(steps >= LEAST_STEPS)) return null;
  return (Math.max(0, planned - steps) * now) / steps;
}

/** The finding that the verdict's promise is about: the gravest with a gain; null where there is none. */
export function promising(update) {
  const first = ranked(update.findings ?? []).find((finding) => !isCleared(finding) && finding.severity !== "info");
  return finite(first?.gain?.share_of_step) === null ? null : first;
}

/** One sentence on the time that the verdict's finding costs; empty where that is not known. */
export function savingText(update) {
  const share = promising(update)?.gain.share_of_step;
  if (update.verdict?.key !== "finding_gain" || share === undefined) return "";
  const left = remainingS(update);
  if (left !== null && left * share >= LEAST_S) {
    return t("That saves {saved} of the remaining {left}.", { saved: duration(left * share), left: duration(left) });
  }
  const spent = finite(update.now_s);
  if (left !== null || spent === null || spent * share < LEAST_S) return "";
  return t("It has cost {lost} of {spent} so far.", { lost: duration(spent * share), spent: duration(spent) });
}
