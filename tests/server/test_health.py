"""Whether the server does its work: what is told where a part of it has ended or fails."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.server.running_server import settings_in

from oomwatch.store.store import StoreError
from oomwatch.tasks import end
from oomwatch.web.app import running
from oomwatch.web.parts import Parts
from oomwatch.web.upkeep import helpings
from oomwatch.web.wellbeing import silencing


def in_a_server(folder: Path, story: Callable[[Parts], Awaitable[None]]) -> None:
    async def tell() -> None:
        async with running(settings_in(folder)) as parts:
            await story(parts)

    asyncio.run(tell())


def test_a_task_that_dies_by_a_defect_shows(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def dies() -> None:
        raise ZeroDivisionError

    async def story(parts: Parts) -> None:
        for _ in range(100):  # the journal is yet to begin
            await asyncio.sleep(0)
        assert silencing(parts) == []
        parts.crew.start("spare", dies())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert silencing(parts) == ["the task spare has ended by a defect; see the log, and restart the server"]
        assert parts.service.defects.total == 1

    in_a_server(tmp_path, story)
    assert "ZeroDivisionError" in caplog.text


def test_a_task_that_swallows_its_cancellation_once_still_ends() -> None:
    """As `asyncio.wait_for` may before Python 3.12; a server that stops must not wait for it for ever."""
    swallowed: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed.append("once")
        await asyncio.Event().wait()

    async def story() -> None:
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        await asyncio.wait_for(end([task]), 5)
        assert task.cancelled()

    asyncio.run(story())
    assert swallowed == ["once"]


def test_a_defect_in_the_housekeeping_is_counted_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def defect(_now: float) -> bool:
        raise TypeError("a defect")

    async def story(parts: Parts) -> None:
        await helpings(parts, defect)
        assert parts.service.defects.total == 1

    in_a_server(tmp_path, story)
    assert "TypeError: a defect" in caplog.text


def test_a_database_that_cannot_be_tidied_up_now_is_no_defect(tmp_path: Path) -> None:
    def locked(_now: float) -> bool:
        raise StoreError("database: locked")

    async def story(parts: Parts) -> None:
        await helpings(parts, locked)
        assert parts.service.defects.total == 0

    in_a_server(tmp_path, story)
