"""What an ID token says, once it is known to be the provider's, for us, of this trip, and good now.

OpenID Connect Core 1.0, section 3.1.3.7. joserfc checks signatures; its only importer is this file.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from joserfc import errors, jwt
from joserfc.jwk import KeySet

from oomwatch.oidc.errors import OidcError

# Signatures by which only the provider can sign. With "none" anybody could, with HS256 whoever knows the secret, or,
# where a public key is taken for one, again anybody.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
KEY_TYPES = frozenset({"RSA", "EC", "OKP"})
CLOCKS_APART_SECONDS = 60

Claims = Mapping[str, Any]


class UnknownKeyError(OidcError):
    """It is signed by a key that is not among those at hand: the provider may have new ones."""


def keys_of(content: bytes) -> KeySet:
    """The public keys of a JWKS (RFC 7517) that can check a signature. Raises OidcError."""
    try:
        told = msgspec.json.decode(content, type=dict[str, list[dict[str, Any]]], strict=False)
        usable = [key for key in told.get("keys", []) if key.get("kty") in KEY_TYPES and key.get("use", "sig") == "sig"]
        keys: KeySet = KeySet.import_key_set({"keys": usable})
    except (msgspec.DecodeError, UnicodeDecodeError, errors.JoseError, ValueError, KeyError, TypeError) as error:
        raise OidcError(f"the provider's keys cannot be used: {_said(error)}") from error
    return keys


def claims_of(token: str, keys: KeySet, *, issuer: str, client_id: str, nonce: str, now: float) -> Claims:
    """Raises OidcError for whatever is wrong with it, and UnknownKeyError."""
    try:
        claims = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
    except errors.InvalidKeyIdError as error:
        raise UnknownKeyError("the token is signed by a key that the provider does not publish") from error
    except errors.UnsupportedAlgorithmError as error:
        raise OidcError("the token is not signed in a way that only the provider can sign") from error
    except (errors.JoseError, ValueError, TypeError, KeyError) as error:
        raise OidcError(f"the token's signature is not the provider's: {_said(error)}") from error
    _check(claims, issuer, client_id, nonce, now)
    return claims


def _check(claims: Claims, issuer: str, client_id: str, nonce: str, now: float) -> None:
    registry = jwt.JWTClaimsRegistry(
        now=int(now),
        leeway=CLOCKS_APART_SECONDS,
        iss={"essential": True, "value": issuer},
        sub={"essential": True},
        aud={"essential": True, "value": client_id},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True, "value": nonce},
    )
    try:
        registry.validate(dict(claims))
    except errors.ExpiredTokenError as error:
        raise OidcError("the token has expired; are the clocks of this machine and the provider's right?") from error
    except errors.JoseError as error:
        raise OidcError(f"the token is not for this sign-in: {_said(error)}") from error
    audience, party = claims["aud"], claims.get("azp")
    if (isinstance(audience, list) and len(audience) > 1 and party is None) or party not in (None, client_id):
        raise OidcError("the token was made for another program (azp)")


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
