"""Tasks of the event loop that are to work until they are ended here: who ends by a defect is known by name."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

CANCEL_SECONDS = 1.0

logger = logging.getLogger(__name__)


class Crew:
    """`mourn`: called once for each task that ends by itself, whatever made it."""

    def __init__(self, mourn: Callable[[], None] = lambda: None) -> None:
        self._mourn = mourn
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._dead: list[str] = []

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Raises RuntimeError where one of that name is at work."""
        if name in self._tasks and not self._tasks[name].done():
            work.close()
            raise RuntimeError(f"the task {name} is at work already")
        self._tasks[name] = task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._note_death)

    def dead(self) -> list[str]:
        """Names of those that ended by themselves and were not started again."""
        return [name for name in self._dead if self._tasks[name].done()]

    async def end(self, names: Iterable[str] | None = None, *, grace_seconds: float = 0.0) -> None:
        """Return when these, or all, are over; for a while they may end by themselves."""
        wanted = [name for name in (list(self._tasks) if names is None else names) if name in self._tasks]
        tasks = [self._tasks.pop(name) for name in wanted]
        self._dead = [name for name in self._dead if name in self._tasks]
        for task in tasks:
            task.remove_done_callback(self._note_death)
        if tasks and grace_seconds:
            await asyncio.wait(tasks, timeout=grace_seconds)
        await end(tasks)

    def _note_death(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        self._dead.append(task.get_name())
        logger.critical("the task %s has ended by a defect", task.get_name(), exc_info=error)
        self._mourn()


async def end(tasks: Sequence["asyncio.Task[None]"]) -> None:
    """Cancel them until they are over: before Python 3.12 `wait_for` may swallow it in the moment in which it ends."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_SECONDS)
    await asyncio.gather(*tasks, return_exceptions=True)


async def rung(bell: asyncio.Event, seconds: float | None) -> None:
    """Return when the bell rings, or after so long. A cancellation is never swallowed."""
    waiting = asyncio.ensure_future(bell.wait())
    try:
        await asyncio.wait([waiting], timeout=seconds)
    finally:
        waiting.cancel()
