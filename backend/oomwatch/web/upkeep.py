"""The database's housekeeping, a small helping at a time, so that no alert waits behind it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from oomwatch.settings import Settings
from oomwatch.store.store import Keep, StoreError
from oomwatch.web.parts import Parts

COMPACT_SECONDS = 5.0
CHECKPOINT_SECONDS = 15.0
PRUNE_SECONDS = 600.0
PASTS_SECONDS = 60.0
BREATH_SECONDS = 0.2  # between two helpings

logger = logging.getLogger(__name__)


async def keep_up(parts: Parts) -> None:
    """Merge, sync and delete until cancelled."""
    keep_seconds, readings = float(parts.settings.history_keep), kept_readings(parts.settings)
    rounds = 0
    while True:
        await asyncio.sleep(COMPACT_SECONDS)
        await helpings(parts, parts.store.compact)
        if rounds % (CHECKPOINT_SECONDS // COMPACT_SECONDS) == 0:
            await _checkpoint(parts)
        if rounds % (PRUNE_SECONDS // COMPACT_SECONDS) == 0:
            await helpings(parts, lambda now: parts.store.prune(now, keep_seconds, readings=readings))
            await _measure(parts)
        if rounds % (PASTS_SECONDS // COMPACT_SECONDS) == 0:
            await keep_pasts(parts)
        rounds += 1


def kept_readings(settings: Settings) -> Keep:
    """For how long readings are kept, by how fine they are."""
    return Keep(float(settings.history_raw_keep), float(settings.history_10s_keep), float(settings.history_1m_keep))


async def helpings(parts: Parts, work: Callable[[float], Any]) -> None:
    """Do all there is to do. A database that cannot be written says so elsewhere; this tries again later."""
    try:
        there_is_more = True
        while there_is_more:
            there_is_more = await parts.write(work, parts.service.clock())
            await asyncio.sleep(BREATH_SECONDS)
    except StoreError as error:
        logger.debug("housekeeping of the database failed: %s", error)
    except Exception as error:
        _own_up(parts, error)


async def keep_pasts(parts: Parts) -> None:
    """Store what the memory of the running runs is, for when they start again."""
    pasts = parts.service.engine.fleet.pasts
    changed = pasts.changed()
    if not changed:
        return
    try:
        await parts.write(parts.store.keep_pasts, changed, parts.service.clock())
    except StoreError as error:
        pasts.keep_for_later(changed)
        logger.debug("what runs need could not be stored: %s", error)
    except Exception as error:
        _own_up(parts, error)


async def _checkpoint(parts: Parts) -> None:
    """In a thread that reads: the disk may take its time, and the one that writes has alerts to store."""
    try:
        await parts.read(parts.store.checkpoint)
    except StoreError as error:
        logger.debug("the database could not be synced: %s", error)
    except Exception as error:
        _own_up(parts, error)


async def _measure(parts: Parts) -> None:
    """How large the database is now."""
    try:
        await parts.read(parts.storage.measure, parts.store.sizes, parts.service.clock())
    except StoreError as error:
        logger.debug("the database could not be measured: %s", error)
    except Exception as error:
        _own_up(parts, error)


def _own_up(parts: Parts, error: Exception) -> None:
    """A defect of our own. The database goes on without housekeeping until the next round."""
    parts.service.defects.count()
    logger.error("housekeeping of the database failed by a defect", exc_info=error)
