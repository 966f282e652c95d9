"""How people get in and out with a browser: by a token, by name and password, or by way of an identity provider.

Whoever comes in by name has a session, whose text is in a cookie; of a token's holder the token itself is. No other
site can sign a browser in: each form bears what a cookie of the same browser holds, and so does the provider's answer.
"""

import asyncio
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qs

from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response

from oomwatch.access import password
from oomwatch.access.attempts import Attempts
from oomwatch.access.audit import AuditLog, deed
from oomwatch.access.keyring import Keyring
from oomwatch.access.person import (
    NAME_CHARS_MAX,
    Door,
    PersonRole,
    Session,
    User,
    is_session_text,
    name_objection,
    session_text,
    spelled,
)
from oomwatch.access.token import Role, Token, digest_of
from oomwatch.store.people import People
from oomwatch.store.store import StoreError
from oomwatch.web.answers import RefusedError, content_of, refusal, refused
from oomwatch.web.cookies import FORM, TOKEN, Jar
from oomwatch.web.signinpage import (
    BUSY,
    NO_DATABASE,
    OLD_FORM,
    WRONG_PASSWORD,
    WRONG_TOKEN,
    Note,
    Ways,
    sign_in_page,
    too_often,
)
from oomwatch.web.threads import Threads

SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
TOKEN_COOKIE_SECONDS = 30 * 86400
FORM_BYTES_MAX = 8192
SECRET_BYTES = 32
HASHING_MAX, WAITING_MAX = 2, 16  # at once: each hash takes 32 MiB and a tenth of a second of a core

logger = logging.getLogger(__name__)


class Lobby(NamedTuple):
    """What signing in works with. `is_https`: whether people come by https."""

    keyring: Keyring
    attempts: Attempts
    audit: AuditLog
    people: People
    threads: Threads
    clock: Callable[[], float]
    is_https: Callable[[HTTPConnection], bool]

    def jar(self, connection: HTTPConnection) -> Jar:
        return Jar(connection.headers, is_https=self.is_https(connection))


Handler = Callable[[Request], Awaitable[Response]]


class SignIn:
    """The paths that are open to whoever is not known. `doors` are further ways in, by method and path."""

    def __init__(self, lobby: Lobby, provider: str | None) -> None:
        self._lobby = lobby
        self._provider = provider
        self._hashing = asyncio.Semaphore(HASHING_MAX)
        self._waiting = 0
        self.handlers: dict[tuple[str, str], Handler] = {
            ("GET", SIGN_IN): self._show,
            ("POST", SIGN_IN): self._take,
            ("POST", "/"): self._take,  # the page stands in for what was asked for, and keeps its address
            ("POST", SIGN_OUT): self._sign_out,
        }

    def is_ours(self, connection: HTTPConnection) -> bool:
        """Whether the request is about signing in or out."""
        method, path = connection.scope.get("method"), connection.scope["path"]
        return (method, path) in self.handlers

    async def answer(self, request: Request) -> Response:
        """Of a request that is ours."""
        try:
            return await self.handlers[request.method, request.scope["path"]](request)
        except RefusedError as error:
            return await refused(request, error)

    def page(self, connection: HTTPConnection, note: Note | None = None, status: int = 401) -> Response:
        """The forms, and the cookie that belongs to them."""
        jar = self._lobby.jar(connection)
        form = jar.value(FORM) or secrets.token_urlsafe(SECRET_BYTES)
        answer = sign_in_page(Ways(self._lobby.keyring.has_users, self._provider), form, note, status)
        jar.keep(answer, FORM, form, None)
        return answer

    def remember(self, connection: HTTPConnection, address: str, text: str, seconds: int) -> Response:
        """Go on there, with a token's or a session's text in a cookie."""
        answer = RedirectResponse(address, status_code=303)
        self._lobby.jar(connection).keep(answer, TOKEN, text, seconds)
        return answer

    def let_in_by_token(self, connection: HTTPConnection, address: str, text: str, token: Token) -> Response:
        """Go on there, by a token that is good, and note who came in."""
        self._note(connection, token.name, token.role, f"{SIGN_IN} (token)")
        return self.remember(connection, address, text, TOKEN_COOKIE_SECONDS)

    async def admit(
        self, request: Request, name: str, role: PersonRole, door: Door, as_of: User | None = None
    ) -> Response:
        """Begin a session of somebody who is known, and whose password was not changed meanwhile. Raises StoreError."""
        lobby, now = self._lobby, self._lobby.clock()
        text = session_text(secrets.token_urlsafe(SECRET_BYTES))  # a new one each time: none can be planted before
        session = Session(
            id=secrets.token_hex(8),
            digest=digest_of(text),
            name=name,
            role=role,
            door=door,
            created_at=now,
            used_at=now,
        )
        if not await lobby.threads.write(lobby.people.begin_session, session, as_of):
            return self.page(request, WRONG_PASSWORD)
        await self._end_sessions(request)
        lobby.keyring.sessions.begin(session)
        self._note(request, name, role, f"{SIGN_IN} ({door})")
        return self.remember(request, "/", text, int(lobby.keyring.sessions.lasts.most_seconds))

    async def _show(self, request: Request) -> Response:
        return self.page(request)

    async def _take(self, request: Request) -> Response:
        content = await content_of(request, FORM_BYTES_MAX, "the form is")
        form = {name: values[0] for name, values in parse_qs(content.decode(errors="replace")).items()}
        lobby, now = self._lobby, self._lobby.clock()
        ours = lobby.jar(request).value(FORM)
        if ours is None or not hmac.compare_digest(ours.encode(), form.get("form", "").encode()):
            return self.page(request, OLD_FORM, 403)
        name = spelled(form.get("name", "")).strip()[: NAME_CHARS_MAX + 1] if "token" not in form else None
        wait_seconds = lobby.attempts.wait_seconds(name, address_of(request), now)
        if wait_seconds > 0:
            answer = self.page(request, too_often(wait_seconds), 429)
            answer.headers["Retry-After"] = str(int(wait_seconds) + 1)
            return answer
        if self._waiting >= WAITING_MAX:
            return self.page(request, BUSY, 503)
        lobby.attempts.begin(name, address_of(request), now)
        self._waiting += 1  # now: those who wait for the database are many too
        try:
            return self._by_token(request, form) if name is None else await self._by_password(request, name, form)
        except StoreError as error:
            logger.warning("nobody can sign in: %s", error)
            return self.page(request, NO_DATABASE, 503)
        finally:
            self._waiting -= 1

    def _by_token(self, request: Request, form: Mapping[str, str]) -> Response:
        lobby, text = self._lobby, form["token"].strip()
        token = lobby.keyring.find(text)
        if token is None or token.role == "agent" or is_session_text(text):
            logger.warning("somebody at %s could not sign in by a token", address_of(request))
            return self.page(request, WRONG_TOKEN)
        lobby.attempts.succeeded(None, address_of(request))
        return self.let_in_by_token(request, "/", text, token)

    async def _by_password(self, request: Request, name: str, form: Mapping[str, str]) -> Response:
        lobby = self._lobby
        try:
            # What nobody can be called is not looked for: PostgreSQL takes no NUL.
            user = await lobby.threads.read(lobby.people.user, name) if name_objection(name) is None else None
        except StoreError:
            lobby.attempts.take_back(name, address_of(request))
            raise
        user = user if user is not None and user.removed_at is None else None
        given = form.get("password", "")
        if not await self._hash(password.fits, given, user.password if user is not None else None) or user is None:
            logger.warning("somebody at %s could not sign in as %.80r", address_of(request), name)
            return self.page(request, WRONG_PASSWORD)
        lobby.attempts.succeeded(name, address_of(request))
        await self._renew(user, given)
        return await self.admit(request, user.name, user.role, "password", user)

    async def _renew(self, user: User, given: str) -> None:
        """Hash the password by the parameters of today."""
        if password.is_outdated(user.password):
            renewed = await self._hash(password.hashed, given)
            await self._lobby.threads.write(self._lobby.people.renew_hash, user.name, user.password, renewed)

    async def _hash(self, work: Callable[..., str | bool], *args: object) -> str | bool:
        """In a thread, and not more at once than memory is set aside for."""
        async with self._hashing:
            return await asyncio.to_thread(work, *args)

    async def _sign_out(self, request: Request) -> Response:
        answer = RedirectResponse("/", status_code=303)
        jar = self._lobby.jar(request)
        left = next((token for text in jar.values(TOKEN) if (token := self._lobby.keyring.find(text))), None)
        try:
            await self._end_sessions(request)
        except StoreError as error:
            logger.warning("a session could not be ended: %s", error)
            return refusal(503, "the database cannot be written, so the session goes on; try again")
        if left is not None:
            self._note(request, left.name, left.role, SIGN_OUT)
        jar.drop(answer, TOKEN)
        return answer

    def _note(self, connection: HTTPConnection, who: str, role: Role, what: str) -> None:
        """For the audit log. Whoever comes in or goes is led on from there."""
        lobby = self._lobby
        lobby.audit.add(deed(lobby.clock(), who, role, address_of(connection), ("POST", what), 303))

    async def _end_sessions(self, request: Request) -> None:
        """Those of this browser. Raises StoreError."""
        lobby = self._lobby
        for text in filter(is_session_text, lobby.jar(request).values(TOKEN)):
            token = lobby.keyring.find(text)
            if token is not None:
                await lobby.threads.write(lobby.people.end_session, token.digest)
                lobby.keyring.end_session(token)


def address_of(connection: HTTPConnection) -> str:
    """Whose request it is, as far as we know."""
    return connection.client.host if connection.client is not None else ""
