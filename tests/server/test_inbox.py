"""An agent's messages, from its connection to whoever takes them."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from oomwatch.web.inbox import Inbox, Message
from oomwatch.web.turns import MESSAGES_A_ROUND, Turns

MANY = 3 * MESSAGES_A_ROUND


class Line:
    """A connection that says what it is told to say, as long as it is read."""

    def __init__(self) -> None:
        self.inbox: Inbox
        self.is_read = True
        self.is_cut_off = False

    def lend(self, inbox: Inbox) -> None:
        self.inbox = inbox

    def stop_reading(self) -> None:
        self.is_read = False

    def go_on_reading(self) -> None:
        self.is_read = True

    def give_up(self) -> None:
        self.is_cut_off = True


def numbered(count: int) -> list[Message]:
    return [str(number).encode() for number in range(count)]


async def rounds(until: Callable[[], bool]) -> None:
    for _ in range(100):
        if until():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not happen")


def noting(taken: list[Message]) -> Callable[[Message], float]:
    """Takes each, and the next one at once."""

    def take(message: Message) -> float:
        taken.append(message)
        return 0.0

    return take


def told(story: Callable[[Line, Inbox], Awaitable[None]], turns: Turns | None = None) -> None:
    async def begin() -> None:
        line = Line()
        await story(line, Inbox(line, turns or Turns()))

    asyncio.run(begin())


def test_a_message_is_taken_at_once_and_the_next_one_is_read() -> None:
    async def story(line: Line, inbox: Inbox) -> None:
        taken: list[Message] = []
        inbox.put(b"hello")
        assert await inbox.first() == b"hello"
        inbox.open(noting(taken))
        inbox.put(b"one")
        assert taken == [b"one"]
        assert line.is_read

    told(story)


def test_what_is_said_before_it_is_asked_for_is_taken_in_order() -> None:
    async def story(line: Line, inbox: Inbox) -> None:
        taken: list[Message] = []
        for message in (b"hello", b"one", b"two"):
            inbox.put(message)
        assert not line.is_read
        assert await inbox.first() == b"hello"
        inbox.open(noting(taken))
        assert taken == [b"one", b"two"]
        assert line.is_read

    told(story)


def test_a_connection_that_ends_has_no_first_message() -> None:
    async def story(_line: Line, inbox: Inbox) -> None:
        inbox.lose()
        assert await inbox.first() is None

    told(story)


def test_very_many_wait_for_their_turn_in_order_and_nothing_more_is_read() -> None:
    async def story(line: Line, inbox: Inbox) -> None:
        taken: list[Message] = []
        inbox.open(noting(taken))
        for message in numbered(MANY):
            inbox.put(message)
        assert len(taken) == MESSAGES_A_ROUND
        assert not line.is_read
        await rounds(lambda: len(taken) == MANY)
        assert taken == numbered(MANY)
        assert line.is_read

    told(story)


def test_who_says_much_has_no_more_of_a_round_than_others_who_wait() -> None:
    async def story() -> None:
        turns, taken = Turns(), list[Message]()
        lines = {name: Line() for name in (b"a", b"b")}
        for line in lines.values():
            Inbox(line, turns).open(noting(taken))
        for name, line in lines.items():
            for _ in range(MANY):
                line.inbox.put(name)
        await rounds(lambda: len(taken) == 2 * MANY)
        later = taken[MESSAGES_A_ROUND : 2 * MESSAGES_A_ROUND]
        assert later.count(b"a") == later.count(b"b")

    asyncio.run(story())


def test_after_a_pause_the_next_one_is_taken_and_meanwhile_nothing_is_read() -> None:
    async def story(line: Line, inbox: Inbox) -> None:
        taken: list[Message] = []
        both = asyncio.Event()

        def take(message: Message) -> float:
            taken.append(message)
            if len(taken) == 2:
                both.set()
            return 0.01

        inbox.open(take)
        inbox.put(b"one")
        inbox.put(b"two")
        assert taken == [b"one"]
        assert not line.is_read
        await asyncio.wait_for(both.wait(), 10)
        inbox.close()
        assert line.is_read

    told(story)


def test_what_waits_when_its_connection_is_lost_is_taken_before_it_is_over() -> None:
    async def story(_line: Line, inbox: Inbox) -> None:
        taken: list[Message] = []
        inbox.open(noting(taken))
        for message in numbered(MANY):
            inbox.put(message)
        inbox.lose()
        assert len(taken) == MESSAGES_A_ROUND
        await asyncio.wait_for(inbox.over(), 10)
        assert taken == numbered(MANY)

    told(story)


def test_it_is_over_at_once_where_nothing_waits_whatever_pause_is_to_come() -> None:
    async def story(_line: Line, inbox: Inbox) -> None:
        inbox.open(lambda _: 3600.0)
        inbox.put(b"one")
        inbox.lose()
        await asyncio.wait_for(inbox.over(), 10)
        inbox.close()

    told(story)


def test_what_waits_when_it_is_closed_is_not_taken() -> None:
    async def story(line: Line, inbox: Inbox) -> None:
        taken: list[Message] = []
        inbox.open(noting(taken))
        for message in numbered(MANY):
            inbox.put(message)
        inbox.close()
        inbox.put(b"late")
        await asyncio.wait_for(inbox.over(), 10)
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(taken) == MESSAGES_A_ROUND
        assert line.is_read

    told(story)


def test_a_defect_cuts_its_own_connection_off_and_takes_nobody_elses_turn(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        turns, taken = Turns(), list[Message]()
        broken, sound = Line(), Line()

        def fail(message: Message) -> float:
            if int(message) == MESSAGES_A_ROUND:
                raise RuntimeError("a defect")
            return 0.0

        Inbox(broken, turns).open(fail)
        Inbox(sound, turns).open(noting(taken))
        for line in (broken, sound):
            for message in numbered(MANY):
                line.inbox.put(message)
        await rounds(lambda: len(taken) == MANY)
        assert broken.is_cut_off
        assert not sound.is_cut_off

    asyncio.run(story())
    assert "a defect" in caplog.text
