"""Passes: proof of the viewer's token that stands in an address and ends by itself.

Inside a notebook's page a browser keeps our cookie back (another site's frame) or never stores it. What
stands in the frame's address instead must not be the token, since notebooks are saved, mailed and committed
with their outputs. So the notebook gets a *ticket*, good for minutes; the hub trades it for a *pass*, good
for a day, which stands in the path of everything that the framed page asks for and in no file.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from itsdangerous import TimestampSigner

Kind = Literal["ticket", "pass"]

#: Seconds that each is good for: long enough for a notebook to draw its output, and for a day's work.
LASTS_S: dict[Kind, int] = {"ticket": 600, "pass": 24 * 3600}
#: What is signed: the version of the form. Who may do what is in the key and the kind.
_FORM = "1"


def issue(token: str, kind: Kind, now_unix_s: float) -> str:
    """A ticket or pass of the hub whose viewer's token this is, from now on; fit for an address."""
    return _signer(token, kind, now_unix_s).sign(_FORM).decode()


def holds(given: str, token: str, kind: Kind, now_unix_s: float) -> bool:
    """Whether `given` is one that `issue` made of this token and kind, and has not ended."""
    # in whole seconds: one that has lasted for all of them has ended
    return _signer(token, kind, now_unix_s).validate(given, max_age=LASTS_S[kind] - 1)


def _signer(token: str, kind: Kind, now_unix_s: float) -> TimestampSigner:
    signer = TimestampSigner(
        token, f"torchvitals {kind}", key_derivation="hmac", digest_method=hashlib.sha256
    )
    signer.get_timestamp = lambda: int(now_unix_s)  # type: ignore[method-assign]
    return signer
