"""Passwords of people, kept as scrypt hashes that tell their own parameters.

    scrypt$15$8$3$SALT$HASH         log2 of N, r, p; salt and hash in base64

A guess costs whoever stole the database 32 MiB and a tenth of a second, as OWASP's Password Storage Cheat Sheet asks of
scrypt (N=2^15, r=8, p=3). Parameters may rise in later versions: a hash of older ones is made anew at its next use.
"""

import hmac
import secrets
import unicodedata
from base64 import b64decode, b64encode
from functools import cache
from hashlib import scrypt
from typing import NamedTuple

CHARS_MIN, CHARS_MAX = 12, 256  # NIST SP 800-63B asks for 8 where guesses are limited, and for more if nothing else is
DIFFERENT_CHARS_MIN = 5
SALT_BYTES, HASH_BYTES = 16, 32


class Cost(NamedTuple):
    """Parameters of scrypt (RFC 7914)."""

    log2_n: int = 15
    r: int = 8
    p: int = 3


COST = Cost()


def objection(password: str, name: str) -> str | None:
    """Why a person may not have this password; None where nothing speaks against it."""
    if not CHARS_MIN <= len(password) <= CHARS_MAX:
        return (
            f"a password has {CHARS_MIN} to {CHARS_MAX} characters; several words that do not belong together are good"
        )
    if len(set(password)) < DIFFERENT_CHARS_MIN:
        return f"a password has at least {DIFFERENT_CHARS_MIN} different characters"
    if name.lower() in password.lower() and len(password) - len(name) < CHARS_MIN // 2:
        return "a password is not the name of its user"
    return None


def hashed(password: str, cost: Cost = COST) -> str:
    """What is kept of a password. Takes a tenth of a second."""
    salt = secrets.token_bytes(SALT_BYTES)
    parts = ("scrypt", *map(str, cost), b64encode(salt).decode(), b64encode(_hash(password, salt, cost)).decode())
    return "$".join(parts)


def fits(password: str, kept: str | None) -> bool:
    """Whether it is the password of which this is kept. Where nothing is kept it takes as long, and does not fit."""
    if len(password) > CHARS_MAX:
        return False
    _, log2_n, r, p, salt, wanted = (kept or _nobodys()).split("$")
    found = _hash(password, b64decode(salt), Cost(int(log2_n), int(r), int(p)))
    return hmac.compare_digest(found, b64decode(wanted)) and kept is not None


def is_outdated(kept: str, cost: Cost = COST) -> bool:
    """Whether it was made with other parameters than those of today."""
    return kept.split("$")[:4] != ["scrypt", *map(str, cost)]


@cache
def _nobodys() -> str:
    return hashed(secrets.token_urlsafe())


def _hash(password: str, salt: bytes, cost: Cost) -> bytes:
    # The same character may be typed as one or as two; NFKC makes both one.
    text = unicodedata.normalize("NFKC", password).encode()
    n = 1 << cost.log2_n
    memory_bytes = 128 * cost.r * (n + cost.p + 2)  # RFC 7914, section 5
    return scrypt(text, salt=salt, n=n, r=cost.r, p=cost.p, maxmem=2 * memory_bytes, dklen=HASH_BYTES)
