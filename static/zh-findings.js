/** Simplified Chinese for what the hub says: verdicts, findings, reasons, names of metrics and phases. */

export const FINDINGS = {
};
