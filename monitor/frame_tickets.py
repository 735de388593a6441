"""Passes: proof of the viewer's token that stands in an address and ends by itself.

Inside a notebook's page a browser keeps our cookie back (another site's frame) or never stores it. What
stands in the frame's address instead must not be the token, since notebooks are saved, mailed and committed
with their outputs. So the notebook gets a *ticket*, good for minutes; the hub trades it for a *pass*, good
for a day, which stands in the path of everything that the framed page asks for and in no file.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Literal

Kind = Literal["ticket", "pass"]

#: Seconds that each is good for: long enough for a notebook to draw its output, and for a day's work.
LASTS_S: dict[Kind, int] = {"ticket": 600, "pass": 24 * 3600}
#: Hexadecimal digits of the proof: 128 bits.
_PROOF = 32
_FORM = re.compile(rf"([0-9a-f]{{1,12}})-([0-9a-f]{{{_PROOF}}})\Z")


def issue(token: str, kind: Kind, now_unix_s: float) -> str:
    """A ticket or pass of the hub whose viewer's token this is, from now on."""
    until = int(now_unix_s) + LASTS_S[kind]
    return f"{until:x}-{_proof(token, kind, until)}"


def holds(given: str, token: str, kind: Kind, now_unix_s: float) -> bool:
    """Whether `given` is one that `issue` made of this token and kind, and has not ended."""
    found = _FORM.match(given)
    if found is None:
        return False
    until = int(found[1], 16)
    # the proof comes first: how long a forged one would last is nobody's to learn
    return hmac.compare_digest(found[2], _proof(token, kind, until)) and now_unix_s < until


def _proof(token: str, kind: Kind, until: int) -> str:
    told = f"torchvitals {kind} 1 {until}".encode()
    return hmac.new(token.encode(), told, hashlib.sha256).hexdigest()[:_PROOF]
