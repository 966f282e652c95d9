"""What senders have in common: the counts that /metrics tells of each, and work that is done every so often."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from prometheus_client.core import Metric

# What there is now, in two steps: the first in the server's own thread, so that it is of one moment; the second in any.
Read: TypeAlias = Callable[[], Callable[[], Sequence[Metric]]]
OwnUp: TypeAlias = Callable[[], None]

logger = logging.getLogger(__name__)


class Counts:
    """How a sender fares. Totals are of samples, since the start."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sent_total = 0
        self.refused_total = 0  # the store said that it never takes them
        self.dropped_total = 0  # there was no room to wait for a store that does not answer
        self.problem: str | None = None  # why nothing is taken now; None while it is

    def fail(self, problem: str) -> None:
        """Once in the log for each kind of failure."""
        if problem != self.problem:
            logger.warning("%s: %s", self.name, problem)
        self.problem = problem

    def succeed(self, samples: int) -> None:
        if self.problem is not None:
            logger.info("%s: samples are taken again", self.name)
        self.problem = None
        self.sent_total += samples


def always() -> bool:
    """For a server alone."""
    return True


async def every(
    seconds: float,
    work: Callable[[], Awaitable[None]],
    name: str,
    own_up: OwnUp,
    on_duty: Callable[[], bool] = always,
) -> None:
    """Until cancelled, on time whatever the work takes, where it is ours. A defect costs one round, and is counted."""
    loop = asyncio.get_running_loop()
    due_at = loop.time()
    while True:
        await asyncio.sleep(max(0.0, due_at - loop.time()))
        due_at = max(due_at + seconds, loop.time())
        if on_duty():
            await guarded(work, name, own_up)


async def guarded(work: Callable[[], Awaitable[None]], name: str, own_up: OwnUp) -> None:
    try:
        await work()
    except Exception:
        own_up()
        logger.exception("%s failed by a defect; everything else goes on", name)
