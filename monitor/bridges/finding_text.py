"""A finding as a few lines of Markdown, for tools that show text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def finding_text(finding: Mapping[str, Any]) -> str:
    """Severity, title, cause, where, advice, fix and gain; or that it is over."""
    over = " (over)" if finding.get("cleared_at_s") is not None else ""
    where, gain = finding.get("location"), finding.get("gain")
    lines = [
        f"**{finding['severity']}{over}: {finding['title']}** (`{finding['code']}`)",
        f"{finding['cause']}{f', at `{where}`' if where else ''}",
        str(finding.get("advice") or ""),
        f"```\n{finding['snippet']}\n```" if finding.get("snippet") else "",
        f"{gain['speedup']:.2f} times as fast without it: {gain['basis']}" if gain else "",
    ]
    return "\n\n".join(line for line in lines if line)
