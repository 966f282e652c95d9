"""PURE: what an issuer says of itself at /.well-known/openid-configuration (OpenID Connect Discovery 1.0)."""

import ipaddress
from urllib.parse import urlsplit

import msgspec

from oomwatch.oidc.errors import OidcError

WELL_KNOWN = "/.well-known/openid-configuration"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Discovery(msgspec.Struct, frozen=True):
    """The part that is used. Defaults are the specification's."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)

    @property
    def takes_basic(self) -> bool:
        """Whether a client may name its secret in the Authorization header."""
        return "client_secret_basic" in self.token_endpoint_auth_methods_supported


def discovery_of(content: bytes, issuer: str) -> Discovery:
    """Raises OidcError where it is not this issuer's, or names addresses that nobody should trust."""
    try:
        found = msgspec.json.decode(content, type=Discovery)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OidcError(f"{issuer}{WELL_KNOWN} is no description of an OpenID provider: {error}") from error
    if found.issuer != issuer:
        raise OidcError(f'the provider calls itself "{found.issuer[:200]}"; give --oidc-issuer exactly so')
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"):
        address = getattr(found, name)
        if address is not None and not is_trustworthy(address):
            raise OidcError(f"the provider's {name} is no https:// address; keys and codes could be changed on the way")
        if address is not None and _is_number(address) and urlsplit(address).hostname != urlsplit(issuer).hostname:
            raise OidcError(f"the provider's {name} is a number and not its own; it may lead anywhere")
    return found


def _is_number(address: str) -> bool:
    """Whether it names a machine by number, or this one: the gate lets those through, for its owner meant them."""
    host = urlsplit(address).hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def is_trustworthy(address: str) -> bool:
    """Whether nobody on the way can read or change what goes to this address: https, or this very machine."""
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and (
            parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
        )
    except ValueError:
        return False
