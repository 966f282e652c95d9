"""The way in by an identity provider: a browser is sent there, and comes back with a code. Loaded where it is set."""

import logging
import secrets
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from oomwatch.access.roles import RoleMap
from oomwatch.oidc import trip as trips
from oomwatch.oidc.errors import OidcError, ProviderAwayError
from oomwatch.oidc.provider import Provider
from oomwatch.oidc.trip import Trip
from oomwatch.store.store import StoreError
from oomwatch.web.cookies import TRIP
from oomwatch.web.signin import Lobby, SignIn, address_of
from oomwatch.web.signinpage import (
    LOST_TRIP,
    NO_DATABASE,
    OIDC_START,
    Note,
    no_group,
    not_vouched_for,
    too_often,
)

OIDC_BACK = "/sign-in/back"
USED_MAX = 10_000

logger = logging.getLogger(__name__)


class OidcDoor:
    """Two paths of `sign_in`. `external_url`: where people reach the server; None: where they asked for it."""

    def __init__(
        self, sign_in: SignIn, lobby: Lobby, provider: Provider, roles: RoleMap, external_url: str | None
    ) -> None:
        self._sign_in = sign_in
        self._lobby = lobby
        self._provider = provider
        self._roles = roles
        self._external_url = external_url
        self._used: dict[str, float] = {}  # states of trips that are over, and when
        sign_in.handlers["GET", OIDC_START] = self._leave
        sign_in.handlers["GET", OIDC_BACK] = self._come_back

    async def _leave(self, request: Request) -> Response:
        trip = Trip(
            secrets.token_urlsafe(24), secrets.token_urlsafe(24), secrets.token_urlsafe(48), int(self._lobby.clock())
        )
        try:
            address = await self._provider.way_there(trip, self._back(request))
        except OidcError as error:
            return self._failed(request, error)
        answer = RedirectResponse(address, status_code=303)
        self._lobby.jar(request).keep(answer, TRIP, trips.written(trip), int(trips.SECONDS_MAX))
        return answer

    async def _come_back(self, request: Request) -> Response:
        answer = await self._let_in(request)
        self._lobby.jar(request).drop(answer, TRIP)
        return answer

    async def _let_in(self, request: Request) -> Response:
        query, now, address = request.query_params, self._lobby.clock(), address_of(request)
        trip = trips.read(self._lobby.jar(request).value(TRIP) or "")
        if trip is None or not trip.is_of(query.get("state", ""), now) or trip.state in self._used:
            return self._sign_in.page(request, LOST_TRIP, 403)
        wait_seconds = self._lobby.attempts.wait_seconds(None, address, now)
        if wait_seconds > 0:
            return self._sign_in.page(request, too_often(wait_seconds), 429)
        self._lobby.attempts.begin(None, address, now)
        self._use(trip, now)
        try:
            return await self._admit(request, trip)
        except ProviderAwayError as error:
            self._lobby.attempts.take_back(None, address)
            return self._failed(request, error)
        except OidcError as error:
            return self._failed(request, error)
        except StoreError as error:
            logger.warning("nobody can sign in: %s", error)
            return self._sign_in.page(request, NO_DATABASE, 503)

    async def _admit(self, request: Request, trip: Trip) -> Response:
        query = request.query_params
        if query.get("iss", self._provider.registration.issuer) != self._provider.registration.issuer:
            raise OidcError("the answer is another provider's (iss)")  # RFC 9207
        if "code" not in query:
            raise OidcError(f"it answered {query.get('error', 'nothing')} {query.get('error_description', '')}"[:300])
        person = await self._provider.person(query["code"], trip, self._back(request))
        self._lobby.attempts.succeeded(None, address_of(request))
        role = self._roles.role_of(person.said)
        if role is None:
            logger.warning("%.80r is in no group that may look: %.300r", person.name, person.said)
            return self._sign_in.page(request, no_group(person.name), 403)
        return await self._sign_in.admit(request, person.name, role, "oidc")

    def _use(self, trip: Trip, now: float) -> None:
        """It counts once. The cookie is dropped too; whoever kept a copy gets no further."""
        self._used[trip.state] = now
        while len(self._used) > USED_MAX or now - next(iter(self._used.values())) > trips.SECONDS_MAX:
            self._used.pop(next(iter(self._used)))

    def _failed(self, request: Request, error: OidcError) -> Response:
        logger.warning("sign-in by %s failed: %s", self._provider.registration.issuer, error)
        return self._sign_in.page(request, _note(error), 502)

    def _back(self, request: Request) -> str:
        if self._external_url is not None:
            return self._external_url.rstrip("/") + OIDC_BACK
        scheme = "https" if self._lobby.is_https(request) else "http"
        return f"{scheme}://{request.headers.get('host', '')}{OIDC_BACK}"


def _note(error: OidcError) -> Note:
    return not_vouched_for(" ".join(str(error).split()))


def host_of(issuer: str) -> str:
    """What people are told of it."""
    return urlsplit(issuer).netloc
