"""A verifier of Standard Webhooks, written from the specification and sharing nothing with the code that signs.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping

TOLERANCE_SECONDS = 5 * 60


class UnverifiedError(Exception):
    """The request is not from whoever holds the secret, or not of now."""


def verify(secret: str, headers: Mapping[str, str], content: bytes, now: float) -> str:
    """The message's id. Raises UnverifiedError with the reason."""
    id_, stamp, signatures = (headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not id_ or not stamp.isdecimal() or not signatures:
        raise UnverifiedError("a header is missing")
    if abs(now - int(stamp)) > TOLERANCE_SECONDS:
        raise UnverifiedError("it is too old, or of the future")
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    expected = hmac.digest(key, f"{id_}.{stamp}.".encode() + content, hashlib.sha256)
    for one in signatures.split(" "):
        version, _, signature = one.partition(",")
        if version == "v1" and hmac.compare_digest(base64.b64decode(signature), expected):
            return id_
    raise UnverifiedError("no signature fits")
