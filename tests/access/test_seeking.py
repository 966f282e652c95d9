"""Sessions that another server has only just begun, and strangers who make texts up."""

import asyncio

from tests.access.test_sessions import START, TEXT, World, session
from tests.server.running_server import DEADLINE_SECONDS, RunningServer

from oomwatch.access.person import Session, session_text
from oomwatch.access.token import Token, digest_of
from oomwatch.store.errors import StoreError
from oomwatch.web.entrance import seeker
from oomwatch.web.seeking import MISSED_SECONDS, OF_ONE_ADDRESS_MAX, Seeker

HERE, THERE = "192.0.2.1", "198.51.100.7"


class Database:
    """Answers once it may."""

    def __init__(self) -> None:
        self.kept: dict[str, Session] = {}
        self.asked: list[str] = []
        self.answers = asyncio.Event()
        self.is_down = False

    async def look(self, digest: str) -> Session | None:
        self.asked.append(digest)
        await self.answers.wait()
        if self.is_down:
            raise StoreError("it is away")
        return self.kept.get(digest)


async def _turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_what_a_browser_asks_for_at_once_is_all_answered_by_one_look() -> None:
    async def ask() -> None:
        world, database = World(), Database()
        database.kept[digest_of(TEXT)] = session()
        seeker = Seeker(world.keyring, database.look)
        asked = [asyncio.create_task(seeker.seek(TEXT, HERE)) for _ in range(12)]
        await _turns()
        database.answers.set()
        names = [token.name if token is not None else None for token in await asyncio.gather(*asked)]
        assert names == ["lin"] * 12
        assert len(database.asked) == 1

    asyncio.run(ask())


def test_a_stranger_who_makes_texts_up_keeps_nobody_out() -> None:
    async def ask() -> None:
        world, database = World(), Database()
        database.kept[digest_of(TEXT)] = session()
        seeker = Seeker(world.keyring, database.look)
        made_up = [asyncio.create_task(seeker.seek(session_text(f"guess {n}"), THERE)) for n in range(100)]
        await _turns()
        lin = asyncio.create_task(seeker.seek(TEXT, HERE))
        await _turns()
        database.answers.set()
        assert await lin is not None
        assert await asyncio.gather(*made_up) == [None] * 100
        assert len(database.asked) == OF_ONE_ADDRESS_MAX + 1

    asyncio.run(ask())


def test_what_was_sought_in_vain_is_not_sought_again_for_a_while() -> None:
    async def ask() -> None:
        world, database = World(), Database()
        database.answers.set()
        seeker = Seeker(world.keyring, database.look, clock=lambda: world.now)
        for _ in range(3):
            assert await seeker.seek(TEXT, HERE) is None
        assert len(database.asked) == 1
        database.kept[digest_of(TEXT)] = session()
        world.now += MISSED_SECONDS
        assert await seeker.seek(TEXT, HERE) is not None

    asyncio.run(ask())


def test_a_database_that_is_away_is_no_word_against_a_session() -> None:
    async def ask() -> None:
        world, database = World(), Database()
        database.answers.set()
        database.kept[digest_of(TEXT)] = session()
        seeker = Seeker(world.keyring, database.look)
        database.is_down = True
        assert await seeker.seek(TEXT, HERE) is None
        database.is_down = False
        assert await seeker.seek(TEXT, HERE) is not None

    asyncio.run(ask())


def test_nobody_waits_for_ever_for_a_database_that_does_not_answer() -> None:
    async def ask() -> None:
        world, database = World(), Database()
        seeker = Seeker(world.keyring, database.look, wait_seconds=0.01)
        assert await seeker.seek(TEXT, HERE) is None
        assert len(database.asked) == 1

    asyncio.run(ask())


def test_a_session_that_another_server_has_just_begun_is_found(server: RunningServer) -> None:
    parts = server.parts
    now = START

    async def look(text: str) -> Token | None:
        return await sought.seek(text, HERE)

    def found(text: str) -> Token | None:
        return asyncio.run_coroutine_threadsafe(look(text), server.loop).result(DEADLINE_SECONDS)

    sought = seeker(parts, clock=lambda: now)
    assert found(TEXT) is None
    parts.store.people.begin_session(session(parts.service.clock()))
    now += MISSED_SECONDS
    assert found(TEXT) is not None
    assert server.get("/api/v1/state", headers={"Cookie": f"oomwatch_token={TEXT}"}).status_code == 200
