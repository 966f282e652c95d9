"""Messages take their turns, so that nothing else waits for all of them."""

import asyncio

from oomwatch.web.turns import SHARE_SECONDS, Turns

MESSAGES = 100


def test_of_very_many_messages_each_round_takes_as_many_as_fit() -> None:
    log: list[str] = []

    async def story() -> None:
        now = 0.0
        turns = Turns(clock=lambda: now)

        async def take() -> None:
            nonlocal now
            await turns.next()
            now += SHARE_SECONDS / 10
            log.append("message")

        async def tick() -> None:
            while log.count("message") < MESSAGES:
                log.append("tick")
                await asyncio.sleep(0)

        await asyncio.gather(*(take() for _ in range(MESSAGES)), tick())

    asyncio.run(story())
    between = "".join("t" if one == "tick" else "m" for one in log).split("t")
    assert max(len(some) for some in between) == 11  # tenths of it add up to a little less than they should
    assert sum(len(some) for some in between) == MESSAGES


def test_messages_that_come_one_by_one_wait_for_nothing() -> None:
    async def story() -> int:
        now, rounds = 0.0, 0
        turns = Turns(clock=lambda: now)
        for _ in range(10):
            before = now
            waiting = turns.next()
            try:
                while True:
                    waiting.send(None)
                    rounds += 1
            except StopIteration:
                pass
            now = before + 1.0
            await asyncio.sleep(0)
        return rounds

    assert asyncio.run(story()) == 0
