"""The ways in, put together: which paths people sign in by, and what the guard asks of everybody."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection

from oomwatch.access.person import Session
from oomwatch.access.roles import role_map
from oomwatch.notify import http
from oomwatch.notify.secret import Secret
from oomwatch.options import SettingError
from oomwatch.settings import Settings
from oomwatch.web.access import header_of
from oomwatch.web.guard import Access
from oomwatch.web.parts import Parts
from oomwatch.web.seeking import Seeker
from oomwatch.web.signin import Lobby, SignIn

if TYPE_CHECKING:  # of an extra
    from oomwatch.oidc.provider import Provider

PERMIT = "start the server with --oidc-private"


def provider_of(settings: Settings, client: http.Client, clock: Callable[[], float]) -> "Provider | None":
    """The identity provider that people sign in by, if one is set. Raises SettingError."""
    issuer, client_id = settings.oidc_issuer, settings.oidc_client_id
    if issuer is None or client_id is None:
        return None
    try:
        from oomwatch.oidc.provider import Provider, Registration  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise SettingError('oidc_issuer: this needs more: pip install "oomwatch[oidc]"') from error
    from oomwatch.oidc.discovery import is_trustworthy  # noqa: PLC0415 - the same

    if not is_trustworthy(issuer):
        raise SettingError("oidc_issuer: must begin with https://; whoever is on the way could let anybody in")
    secret = Secret(settings.oidc_client_secret) if settings.oidc_client_secret is not None else None
    client.allow_private_addresses(settings.oidc_private)
    registration = Registration(
        issuer, client_id, secret, settings.oidc_scopes, settings.oidc_name_claim, settings.oidc_role_claims
    )
    return Provider(registration, client, clock)


def access_of(parts: Parts) -> Access:
    """What the guard works with. Raises SettingError."""
    settings = parts.settings
    is_https = _is_https(settings)
    lobby = Lobby(
        parts.keyring, parts.attempts, parts.audit, parts.store.people, parts.threads, parts.service.clock, is_https
    )
    sign_in = SignIn(lobby, None)
    if parts.provider is not None:
        from oomwatch.web.oidcdoor import OidcDoor, host_of  # noqa: PLC0415 - of an extra

        sign_in = SignIn(lobby, host_of(parts.provider.registration.issuer))
        OidcDoor(sign_in, lobby, parts.provider, role_map(settings.operators, settings.readers), settings.external_url)
    seek = seeker(parts).seek if parts.cluster is not None else None
    header = header_of(settings)
    return Access(parts.keyring, parts.audit, sign_in, header, parts.service.clock, is_https, seek)


def _is_https(settings: Settings) -> Callable[[HTTPConnection], bool]:
    """Whether people come by https: to this server, or to a proxy that says so or that the settings name."""
    always = (settings.external_url or "").startswith("https:")
    return lambda connection: always or connection.scope["scheme"] in {"https", "wss"}


def seeker(parts: Parts, clock: Callable[[], float] = time.monotonic) -> Seeker:
    """For servers that share a database."""

    async def look(digest: str) -> Session | None:
        return await parts.read(parts.store.people.session, digest)

    return Seeker(parts.keyring, look, clock=clock)
