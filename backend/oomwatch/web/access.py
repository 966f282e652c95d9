"""Tokens and the audit log of a running server: what changes in the database is taken over, what is done is stored."""

import asyncio
import logging

from oomwatch.access.keyring import Keyring
from oomwatch.options import SettingError
from oomwatch.settings import Settings, address_of
from oomwatch.store.store import StoreError
from oomwatch.web.parts import Parts

LOOK_SECONDS = 2.0  # so long a revoked token may still be used

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
            "set --token-file and --reader-token-file, or make tokens by oomwatch token create, "
            "or say --open-to-network if whoever can reach the address may look and send"
        )


async def keep_access(parts: Parts) -> None:
    """Until cancelled. A database that cannot be read leaves the tokens as they were, and says so elsewhere."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            parts.keyring.replace(await parts.read(parts.store.tokens))
        except StoreError as error:
            logger.debug("tokens could not be read: %s", error)
        await write_audit(parts)


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
