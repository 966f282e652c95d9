"""Messages take their turns, so that nothing else waits for all of them."""

import asyncio
from collections.abc import Callable

from oomwatch.web.turns import MESSAGES_A_ROUND, Turns

MESSAGES = 5 * MESSAGES_A_ROUND


async def all_taken(turns: Turns, *, gone: int = 0) -> list[str]:
    """What happened in which order: "tick" once a round, and each message with its number. Some do not wait."""
    log: list[str] = []

    def taking(number: int) -> Callable[[], None]:
        return lambda: log.append(str(number))

    takes = [taking(number) for number in range(MESSAGES)]
    for take in takes:
        if turns.take(take):
            take()
    for take in takes[MESSAGES - gone :]:
        turns.leave(take)
    while len(log) - log.count("tick") < MESSAGES - gone:
        log.append("tick")
        await asyncio.sleep(0)
    return log


def test_of_very_many_messages_each_round_takes_some_and_all_have_their_turn_in_order() -> None:
    log = asyncio.run(all_taken(Turns()))
    between = " ".join(log).split("tick")
    assert max(len(some.split()) for some in between) == MESSAGES_A_ROUND
    assert [one for one in log if one != "tick"] == [str(number) for number in range(MESSAGES)]


def test_who_has_gone_takes_nobodys_turn() -> None:
    log = asyncio.run(all_taken(Turns(), gone=3 * MESSAGES_A_ROUND))
    assert len(log) - log.count("tick") == 2 * MESSAGES_A_ROUND
    assert log.count("tick") <= 3


def test_messages_that_come_one_by_one_wait_for_nothing() -> None:
    async def story() -> None:
        turns = Turns()
        for _ in range(MESSAGES):
            assert turns.take(lambda: None)
            await asyncio.sleep(0)

    asyncio.run(story())


def test_who_fails_at_its_turn_takes_nobody_elses() -> None:
    async def story() -> None:
        turns, taken, failed = Turns(), list[int](), list[object]()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context["exception"]))

        def fail() -> None:
            raise RuntimeError("a defect")

        while turns.take(fail):
            pass
        turns.take(lambda: taken.append(1))
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(failed) == 1
        assert taken == [1]

    asyncio.run(story())
