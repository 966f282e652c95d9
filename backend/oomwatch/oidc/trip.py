"""PURE: one browser's way to the identity provider and back: what it takes along, and what it must bring back.

The browser keeps the trip in a cookie that no script and no other site can read. So the server keeps nothing of those
who never come back, and any server of a cluster can take in who does.
"""

import hmac
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import NamedTuple

SECONDS_MAX = 600.0
_PARTS = 4


class Trip(NamedTuple):
    """`state`: ties the answer to this browser; `nonce`: ties the token to this trip; `verifier`: PKCE's (RFC 7636)."""

    state: str
    nonce: str
    verifier: str
    began_at: int  # Unix seconds

    @property
    def challenge(self) -> str:
        """What the provider is shown of the verifier: S256."""
        return urlsafe_b64encode(sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()

    def is_of(self, state: str, now: float) -> bool:
        """Whether an answer with this state belongs to it, and comes in time."""
        return hmac.compare_digest(self.state.encode(), state.encode()) and 0 <= now - self.began_at <= SECONDS_MAX


def written(trip: Trip) -> str:
    """For a cookie."""
    return ".".join(map(str, trip))


def read(text: str) -> Trip | None:
    """Of a cookie; None for what is none of ours."""
    parts = text.split(".")
    if len(parts) != _PARTS or not all(parts) or not parts[-1].isdecimal():
        return None
    return Trip(parts[0], parts[1], parts[2], int(parts[3][:20]))
