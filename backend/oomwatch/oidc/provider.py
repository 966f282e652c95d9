"""The identity provider: what it says of itself, and who a browser is that comes back from it.

Everything goes out through the gate (docs/decisions/0006-outgoing-requests.md), and no redirect is followed.
"""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from joserfc.jwk import KeySet

from oomwatch.notify import http
from oomwatch.notify.secret import Secret
from oomwatch.oidc.discovery import WELL_KNOWN, Discovery, discovery_of
from oomwatch.oidc.errors import OidcError, ProviderAwayError
from oomwatch.oidc.idtoken import Claims, UnknownKeyError, claims_of, keys_of
from oomwatch.oidc.person import Person, lacks, person_of
from oomwatch.oidc.trip import Trip

ANSWER_BYTES = 262_144  # keys of a large provider are some 10 KiB
KEPT_SECONDS = 3600.0  # keys and addresses, which change by the month
KEYS_AGAIN_SECONDS = 60.0  # sooner nobody's unknown key makes us ask for new ones
FAILED_SECONDS = 5.0  # while it is away, not everybody who comes waits for it in turn
OK, BROKEN = 200, 500


class Registration(NamedTuple):
    """What the provider and we agreed on."""

    issuer: str
    client_id: str
    client_secret: Secret | None
    scopes: tuple[str, ...]
    name_claim: str
    role_claims: tuple[str, ...]


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str
    access_token: str = ""


class _Known(NamedTuple):
    discovery: Discovery
    keys: KeySet
    at: float


class Provider:
    """One issuer. `clock` gives Unix seconds. Every call may raise OidcError."""

    def __init__(self, registration: Registration, client: http.Client, clock: Callable[[], float]) -> None:
        self.registration = registration
        self._client = client
        self._clock = clock
        self._known: _Known | None = None
        self._failed: tuple[float, str] | None = None
        self._asking = asyncio.Lock()

    async def way_there(self, trip: Trip, redirect_uri: str) -> str:
        """The address to send a browser to."""
        known, ours = await self._ask_who_it_is(KEPT_SECONDS), self.registration
        query = urlencode({
            "response_type": "code", "client_id": ours.client_id, "redirect_uri": redirect_uri,
            "scope": " ".join(ours.scopes), "state": trip.state, "nonce": trip.nonce,
            "code_challenge": trip.challenge, "code_challenge_method": "S256",
        })  # fmt: skip
        address = known.discovery.authorization_endpoint
        return f"{address}{'&' if '?' in address else '?'}{query}"

    async def person(self, code: str, trip: Trip, redirect_uri: str) -> Person:
        """Who came back with this code."""
        known, ours = await self._ask_who_it_is(KEPT_SECONDS), self.registration
        tokens = await self._redeem(known.discovery, code, trip, redirect_uri)
        claims = await self._claims(tokens.id_token, trip)
        address = known.discovery.userinfo_endpoint
        if address is not None and tokens.access_token and lacks(claims, ours.name_claim, ours.role_claims):
            claims = {**await self._userinfo(address, tokens.access_token, claims), **claims}
        return person_of(claims, ours.name_claim, ours.role_claims)

    async def _claims(self, id_token: str, trip: Trip) -> Claims:
        """Of the token. Where its key is not known, the provider is asked for its keys again."""
        try:
            return await self._claims_by_keys(id_token, trip, KEPT_SECONDS)
        except UnknownKeyError:
            return await self._claims_by_keys(id_token, trip, KEYS_AGAIN_SECONDS)

    async def _claims_by_keys(self, id_token: str, trip: Trip, no_older_seconds: float) -> Claims:
        known, ours = await self._ask_who_it_is(no_older_seconds), self.registration
        return claims_of(
            id_token, known.keys, issuer=ours.issuer, client_id=ours.client_id, nonce=trip.nonce, now=self._clock()
        )

    async def _ask_who_it_is(self, no_older_seconds: float) -> _Known:
        async with self._asking:  # one browser asks, the others wait for the answer
            if self._known is None or not 0 <= self._clock() - self._known.at < no_older_seconds:
                if self._failed is not None and 0 <= self._clock() - self._failed[0] < FAILED_SECONDS:
                    raise ProviderAwayError(self._failed[1])
                self._known = await self._look()
            return self._known

    async def _look(self) -> _Known:
        issuer = self.registration.issuer
        try:
            discovery = discovery_of(await self._get(issuer.rstrip("/") + WELL_KNOWN), issuer)
            return _Known(discovery, keys_of(await self._get(discovery.jwks_uri)), self._clock())
        except OidcError as error:
            self._failed = self._clock(), str(error)
            raise ProviderAwayError(str(error)) from error

    async def _redeem(self, discovery: Discovery, code: str, trip: Trip, redirect_uri: str) -> _Tokens:
        ours = self.registration
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri,
            "code_verifier": trip.verifier,
        }  # fmt: skip
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if ours.client_secret is not None and discovery.takes_basic:
            headers["Authorization"] = _basic(ours.client_id, ours.client_secret)
        else:
            form["client_id"] = ours.client_id
            if ours.client_secret is not None:
                form["client_secret"] = ours.client_secret.reveal()
        content = await self._ask("POST", discovery.token_endpoint, headers, urlencode(form).encode())
        try:
            return msgspec.json.decode(content, type=_Tokens)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise OidcError(f"the provider gave no ID token: {error}") from error

    async def _userinfo(self, address: str, access_token: str, claims: Claims) -> Claims:
        """More of the same person (OpenID Connect Core, section 5.3)."""
        content = await self._ask("GET", address, {"Authorization": f"Bearer {access_token}"})
        try:
            told = msgspec.json.decode(content, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise OidcError(f"what the provider tells of people is not understood: {error}") from error
        if told.get("sub") != claims["sub"]:
            raise OidcError("the provider told of somebody else (sub)")
        return told

    async def _get(self, address: str) -> bytes:
        return await self._ask("GET", address, {"Accept": "application/json"})

    async def _ask(self, method: str, address: str, headers: Mapping[str, str], content: bytes = b"") -> bytes:
        """The body of an answer 200."""
        url = Secret(address)
        answer = await http.ask(self._client, method, url, content=content, headers=headers, answer_bytes=ANSWER_BYTES)
        if not isinstance(answer, http.Answer):
            raise ProviderAwayError(answer.reason)
        if answer.status != OK:
            said = http.harmless(_error_in(answer.content), url)
            kind = ProviderAwayError if answer.status >= BROKEN else OidcError
            raise kind(f"{http.shown(url)} answered {answer.status}" + (f": {said}" if said else ""))
        return answer.content


def _basic(client_id: str, secret: Secret) -> str:
    """RFC 6749, section 2.3.1: each part is encoded as in a form before they are joined."""
    pair = f"{quote(client_id, safe='')}:{quote(secret.reveal(), safe='')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def _error_in(content: bytes) -> str:
    """What an OAuth error says (RFC 6749, section 5.2), and nothing of an answer that is none."""
    try:
        told = msgspec.json.decode(content, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    return " ".join(str(told[name]) for name in ("error", "error_description") if name in told)
