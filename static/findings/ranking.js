/** The order of findings: what hurts most first. Pure. */

const SEVERITY = { critical: 0, warning: 1, info: 2 };

/** Active findings by severity, then by what their removal would save, then by age; cleared ones last. */
export function ranked(findings) {
  return [...findings].sort((a, b) =>
    Number(isCleared(a)) - Number(isCleared(b))
    || (SEVERITY[a.severity] ?? 3) - (SEVERITY[b.severity] ?? 3)
    || share(b) - share(a)
    || (a.raised_at_s ?? Infinity) - (b.raised_at_s ?? Infinity)
    || identity(a).localeCompare(identity(b)));
}

/** Whether the finding is over. */
export function isCleared(finding) {
  return finding.cleared_at_s !== null && finding.cleared_at_s !== undefined;
}

/** What makes two findings the same one: code, cause and ranks. */
export function identity(finding) {
  return JSON.stringify([finding.code, finding.cause, finding.ranks ?? []]);
}

/** The worst severity among active findings, or null. */
export function worst(findings) {
  return ranked(findings).find((finding) => !isCleared(finding))?.severity ?? null;
}

function share(finding) {
  return Number.isFinite(finding.gain?.share_of_step) ? finding.gain.share_of_step : -1;
}
