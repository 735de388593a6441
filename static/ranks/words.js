/** What the page says about a rank: why it stands out, where it is, how it ended. Pure. */

import { duration, percent, withUnit } from "../app/format.js";
import { N, t, word } from "../locale/i18n.js";

const LEAST_SHARE = 0.005; // of exchanges, below which "0 %" would be said
const MOST_SPANS = 6; // of ranks, named one by one

/** Why a rank stands out: its icon, how bad it is, the word for it, and what that means. Worst first. */
export const ODD = {
  died: { icon: "critical", tone: "critical", word: N("died"), means: N("Ended without a clean end.") },
  stopped: { icon: "stopped", tone: "critical", word: N("stopped"), means: N("No step for far longer than usual.") },
  behind: { icon: "warning", tone: "warning", word: N("behind"), means: N("Fewer steps than the other ranks.") },
  late: {
    icon: "warning", tone: "warning", word: N("late"),
    means: N("Comes last to the exchange: the others wait for it."),
  },
  slow: {
    icon: "warning", tone: "warning", word: N("slow"),
    means: N("Takes longer for its own work than the other ranks."),
  },
};

/** The word for a rank's state: why it stands out, else "ended" or "running". */
export function stateWord({ worst, ended }) {
  return ODD[worst] ? t(ODD[worst].word) : ended ? t("ended") : t("running");
}

/** "rank 3 died" and what is known of it: `{head, detail}`; detail may be "". */
export function oddText(rank, nowS) {
  return { head: t("rank {rank} {state}", { rank: rank.rank, state: stateWord(rank) }), detail: detail(rank, nowS) };
}

function detail(rank, nowS) {
  if (rank.worst === "died") return endText(rank.ended);
  if (rank.worst === "stopped") return stoppedText(rank, nowS);
  if (rank.worst === "late" && rank.last_share >= LEAST_SHARE)
    return t("last in {share} % of exchanges", { share: percent(rank.last_share) });
  if (rank.worst === "slow" && rank.step_ms !== null)
    return t("{own} of own work a step", { own: withUnit(ownMs(rank), "ms") });
  if (rank.worst === "behind") return t("at step {step}", { step: rank.steps });
  return "";
}

function stoppedText({ phase, phase_since_s: since }, nowS) {
  if (phase === null || phase === undefined) return "";
  if (since === null || since === undefined) return t("in {phase}", { phase: word(phase) });
  return t("in {phase} for {time}", { phase: word(phase), time: duration(nowS - since) });
}

/** How a rank ended: its reason, else its signal or exit code. */
export function endText(ended) {
  if (!ended) return "";
  if (ended.reason) return String(ended.reason);
  if (ended.signal !== null && ended.signal !== undefined) return t("signal {signal}", { signal: ended.signal });
  return ended.code === null || ended.code === undefined ? "" : t("exit code {code}", { code: ended.code });
}

/** Mean time of a step that is the rank's own, not waiting for others, in ms; null when not measured. */
export function ownMs({ step_ms: step = null, comm_ms: comm = null }) {
  return step === null ? null : step - (comm ?? 0);
}

/** One cell in words: `[what, value]` pairs for a tip; what was not measured is left out. */
export function cellText({ phase, stepMs, commMs }) {
  return [
    [t("mostly"), phase === null ? null : word(phase)],
    [t("step"), withUnit(stepMs, "ms")],
    [t("of it waiting"), withUnit(commMs, "ms")],
  ].filter(([, value]) => value !== null);
}

/** Numbers of ranks as people write them: "0–3, 7", and how many more where there is no end of them. */
export function rankList(ranks) {
  const spans = [];
  for (const rank of [...ranks].sort((a, b) => a - b)) {
    if (spans.length > 0 && spans.at(-1)[1] === rank - 1) spans.at(-1)[1] = rank;
    else spans.push([rank, rank]);
  }
  const named = spans
    .slice(0, MOST_SPANS)
    .map(([first, last]) =>
      first === last ? `${first}` : last === first + 1 ? `${first}, ${last}` : `${first}–${last}`,
    )
    .join(", ");
  const more = spans.slice(MOST_SPANS).reduce((total, [first, last]) => total + last - first + 1, 0);
  return more === 0 ? named : `${named}, ${t("and {more} more", { more })}`;
}

/** Ranks that stand out, in the hub's order (worst first). */
export function oddOnes(ranks) {
  return ranks.filter(({ worst }) => ODD[worst] !== undefined);
}
