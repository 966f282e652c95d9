"""PURE: one token: for whom it is, and whether it is good.

A token is a text that its holder sends; what is kept is its digest. It is 256 bits of chance, so a plain SHA-256 is as
good as a slow hash: there is nothing to guess.
"""

from hashlib import sha256
from typing import Literal, TypeAlias

import msgspec

Role: TypeAlias = Literal["agent", "reader", "operator"]
ROLES: tuple[Role, ...] = ("agent", "reader", "operator")
MARK = "oow"  # what secret scanners may look for


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a token. Times are Unix seconds; `nodes`: those that an agent may speak for, empty for any."""

    id: str
    name: str
    role: Role
    digest: str
    nodes: tuple[str, ...] = ()
    created_at: float = 0.0
    expires_at: float | None = None
    revoked_at: float | None = None

    def is_good(self, now: float) -> bool:
        """Whether its holder is let in."""
        return (self.revoked_at is None or now < self.revoked_at) and (self.expires_at is None or now < self.expires_at)


def text_of(role: Role, secret: str) -> str:
    """What the holder sends: oow_ROLE_SECRET."""
    return f"{MARK}_{role}_{secret}"


def digest_of(text: str) -> str:
    """What is kept of a text."""
    return sha256(text.encode()).hexdigest()


def fixed(name: str, role: Role, text: str) -> Token:
    """The token that a setting gives, which lasts as long as the process."""
    return Token(id=f"setting {name}", name=name, role=role, digest=digest_of(text))
