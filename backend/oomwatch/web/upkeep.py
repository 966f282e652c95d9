"""The database's housekeeping, a small helping at a time, so that no alert waits behind it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from oomwatch.web.parts import Parts

COMPACT_SECONDS = 5.0
CHECKPOINT_SECONDS = 15.0
PRUNE_SECONDS = 600.0
BREATH_SECONDS = 0.2  # between two helpings

logger = logging.getLogger(__name__)


async def keep_up(parts: Parts) -> None:
    """Merge, sync and delete until cancelled."""
    keep_seconds = float(parts.settings.history_keep)
    rounds = 0
    while True:
        await asyncio.sleep(COMPACT_SECONDS)
        await _helpings(parts, parts.store.compact)
        if rounds % (CHECKPOINT_SECONDS // COMPACT_SECONDS) == 0:
            await _checkpoint(parts)
        if rounds % (PRUNE_SECONDS // COMPACT_SECONDS) == 0:
            await _helpings(parts, lambda now: parts.store.prune(now, keep_seconds))
        rounds += 1


async def _helpings(parts: Parts, work: Callable[[float], Any]) -> None:
    """Do all there is to do. A database that cannot be written says so elsewhere; this tries again later."""
    try:
        there_is_more = True
        while there_is_more:
            there_is_more = await parts.write(work, parts.service.clock())
            await asyncio.sleep(BREATH_SECONDS)
    except Exception as error:  # whatever the database says
        logger.debug("housekeeping of the database failed: %s", error)


async def _checkpoint(parts: Parts) -> None:
    """In a thread that reads: the disk may take its time, and the one that writes has alerts to store."""
    try:
        await parts.read(parts.store.checkpoint)
    except Exception as error:  # whatever the database says
        logger.debug("the database could not be synced: %s", error)
