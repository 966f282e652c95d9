"""Who is let in by a running server: what changes in the database is taken over, what is done and used is stored."""

import asyncio
import logging
from collections.abc import Callable

from oomwatch.access.keyring import Keyring, fixed_tokens
from oomwatch.access.person import Lasts
from oomwatch.access.proxied import ProxyHeader
from oomwatch.access.roles import role_map
from oomwatch.access.sessions import Known
from oomwatch.access.token import Token
from oomwatch.options import SettingError
from oomwatch.settings import Settings, address_of, signing_proxies
from oomwatch.store.store import Store, StoreError
from oomwatch.web.parts import Parts

LOOK_SECONDS = 2.0  # so long a revoked token may still be used
USED_SECONDS = 60.0  # how often at least the database is told which sessions were used
PRUNE_SECONDS = 3600.0  # how often it forgets those that are over


def keyring_of(settings: Settings, store: Store, clock: Callable[[], float]) -> Keyring:
    """All that lets in now. Raises SettingError where strangers could come in and nobody said that they may."""
    lasts = Lasts(float(settings.session_idle), float(settings.session_length))
    knows_others = settings.oidc_issuer is not None or settings.auth_header is not None
    keyring = Keyring(fixed_tokens(settings), clock, lasts, knows_others=knows_others)
    keyring.replace(*_look(store, clock()))
    check_openness(settings, keyring)
    return keyring


def header_of(settings: Settings) -> ProxyHeader | None:
    """The header of a proxy that is believed, if one is."""
    name = settings.auth_header
    if name is None:
        return None
    role_name = settings.auth_role_header or name
    return ProxyHeader(name, role_name, signing_proxies(settings), role_map(settings.operators, settings.readers))


logger = logging.getLogger(__name__)


def check_openness(settings: Settings, keyring: Keyring) -> None:
    """Raises SettingError where strangers could look or send, and nobody said that they may."""
    if settings.open_to_network or address_of(settings).is_loopback:
        return
    missing = [
        what
        for roles, what in ((("agent",), "agents"), (("reader",), "readers"))
        if not keyring.asks_for(*roles)  # type: ignore[arg-type]
    ]
    if missing:
        raise SettingError(
            f"listen: {settings.listen} is open to the network, and there is "
            f"no token for {' and none for '.join(missing)}; "
            "set --token-file and --reader-token-file, make tokens by oomwatch token create and people by "
            "oomwatch user add, or say --open-to-network if whoever can reach the address may look and send"
        )


async def keep_access(parts: Parts) -> None:
    """Until cancelled. A database that cannot be read leaves the tokens as they were, and says so elsewhere."""
    rounds, told_every = 0, tell_uses_every(parts.keyring.sessions.lasts)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        rounds += 1
        try:
            parts.keyring.replace(*await parts.read(_look, parts.store, parts.service.clock()))
        except StoreError as error:
            logger.debug("tokens could not be read: %s", error)
        await write_audit(parts)
        if rounds % told_every == 0:
            await write_uses(parts)
        if rounds % (PRUNE_SECONDS // LOOK_SECONDS) == 0:
            await _prune(parts)


def _look(store: Store, now: float) -> tuple[list[Token], Known]:
    """What the database knows, asked for at `now`."""
    return store.tokens(), Known(tuple(store.people.sessions()), store.people.has_users(), asked_at=now)


def tell_uses_every(lasts: Lasts) -> int:
    """So many looks: other servers, and the next start, must hear of a use long before the session is idle to them."""
    return max(1, int(min(USED_SECONDS, lasts.idle_seconds / 3) // LOOK_SECONDS))


async def write_uses(parts: Parts) -> None:
    """Tell the database, and so other servers and the next start, when sessions were used."""
    used_at = parts.keyring.sessions.take_used()
    try:
        await parts.write(parts.store.people.use_sessions, used_at)
    except StoreError as error:  # they are told of at their next use
        logger.debug("the use of sessions could not be stored: %s", error)


async def _prune(parts: Parts) -> None:
    now, lasts = parts.service.clock(), parts.keyring.sessions.lasts
    created_before, used_before = now - lasts.most_seconds, now - lasts.idle_seconds - USED_SECONDS
    try:
        await parts.write(
            lambda: parts.store.people.prune_sessions(created_before=created_before, used_before=used_before)
        )
    except StoreError as error:
        logger.debug("sessions that are over could not be deleted: %s", error)


async def write_audit(parts: Parts) -> None:
    """Store what was done; what cannot be stored waits."""
    deeds = parts.audit.take()
    if not deeds:
        return
    try:
        await parts.write(parts.store.note_deeds, deeds)
    except StoreError as error:
        parts.audit.put_back(deeds)
        logger.debug("the audit log could not be written: %s", error)
