"""Tasks that are to work until they are ended."""

import asyncio

import pytest

from oomwatch.tasks import Crew


async def works() -> None:
    await asyncio.Event().wait()


async def dies() -> None:
    raise ZeroDivisionError


def test_who_ends_by_a_defect_is_known_until_it_works_again() -> None:
    deaths: list[None] = []

    async def story() -> None:
        crew = Crew(lambda: deaths.append(None))
        crew.start("one", works())
        crew.start("other", dies())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (crew.dead(), len(deaths)) == (["other"], 1)
        crew.start("other", works())
        assert crew.dead() == []
        await crew.end()
        assert (crew.dead(), len(deaths)) == ([], 1)

    asyncio.run(story())


def test_two_of_one_name_never_work_at_once() -> None:
    async def story() -> None:
        crew = Crew()
        crew.start("one", works())
        with pytest.raises(RuntimeError, match="the task one is at work already"):
            crew.start("one", works())
        await crew.end(["one", "nobody"])
        crew.start("one", works())
        await crew.end()

    asyncio.run(story())


def test_a_task_that_ends_within_its_grace_is_not_broken_off() -> None:
    said: list[str] = []

    async def finishes(asked: asyncio.Event) -> None:
        await asked.wait()
        said.append("done")

    async def story() -> None:
        asked, crew = asyncio.Event(), Crew()
        crew.start("one", finishes(asked))
        await asyncio.sleep(0)
        asked.set()
        await crew.end(grace_seconds=5.0)

    asyncio.run(story())
    assert said == ["done"]
