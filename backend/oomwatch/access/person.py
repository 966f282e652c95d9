"""PURE: people who sign in by name, and the sessions of their browsers."""

import unicodedata
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from oomwatch.access.token import MARK, Token

PersonRole: TypeAlias = Literal["reader", "operator"]
PERSON_ROLES: tuple[PersonRole, ...] = ("reader", "operator")
Door: TypeAlias = Literal["password", "oidc"]
NAME_CHARS_MAX = 80


class User(msgspec.Struct, frozen=True, kw_only=True):
    """One who signs in with a password. Times are Unix seconds; `password`: its hash.

    Whoever was removed is kept as such: a server whose last user goes must not open itself to everybody.
    """

    name: str
    role: PersonRole
    password: str
    created_at: float
    changed_at: float
    removed_at: float | None = None


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One browser that somebody signed in with. Times are Unix seconds."""

    id: str
    digest: str
    name: str
    role: PersonRole
    door: Door
    created_at: float
    used_at: float


class Lasts(NamedTuple):
    """How long a session lasts, seconds: without being used, and at most."""

    idle_seconds: float = 86400.0
    most_seconds: float = 7 * 86400.0


def session_text(secret: str) -> str:
    """What the browser keeps."""
    return f"{MARK}_session_{secret}"


def is_session_text(text: str) -> bool:
    return text.startswith(f"{MARK}_session_")


def as_token(session: Session, lasts: Lasts, used_at: float) -> Token:
    """What the session lets its browser do, and until when."""
    return Token(
        id=f"session {session.id}",
        name=session.name,
        role=session.role,
        digest=session.digest,
        created_at=session.created_at,
        expires_at=min(session.created_at + lasts.most_seconds, used_at + lasts.idle_seconds),
    )


def spelled(name: str) -> str:
    """A name in its one spelling: as in passwords, the same character may be typed as one or as two."""
    return unicodedata.normalize("NFKC", name)


def name_objection(name: str) -> str | None:
    """Why nobody can be called so."""
    if 0 < len(name) <= NAME_CHARS_MAX and name.isprintable() and name == name.strip():
        return None
    return f"a name has 1 to {NAME_CHARS_MAX} printable characters, with no space before or after"
