"""Which sessions are good, and who is cut off, by a clock that a test moves."""

from typing import Any

import pytest

from oomwatch.access.keyring import Keyring
from oomwatch.access.person import Lasts, Session, session_text
from oomwatch.access.sessions import Known
from oomwatch.access.token import digest_of, fixed
from oomwatch.settings import SESSION_SECONDS_MIN
from oomwatch.web.access import LOOK_SECONDS, USED_SECONDS, tell_uses_every

START = 1_700_000_000.0
TEXT = session_text("of lin")
LASTS = Lasts(idle_seconds=600.0, most_seconds=3600.0)


class World:
    """A keyring, and what the database would tell it."""

    def __init__(self, *, with_users: bool = True) -> None:
        self.now = START
        self.keyring = Keyring([], lambda: self.now, LASTS)
        self.kept: tuple[Session, ...] = ()
        self.has_users = with_users
        self.cut_off: list[str] = []

    def look(self, asked_at: float | None = None) -> None:
        """As the server does every two seconds."""
        at = self.now if asked_at is None else asked_at
        self.keyring.replace([], Known(self.kept, self.has_users, at))

    def knows(self) -> bool:
        return self.keyring.find(TEXT) is not None

    def open_page(self) -> Any:
        token = self.keyring.find(TEXT)
        assert token is not None
        return self.keyring.held(token, "reader", lambda: self.cut_off.append(token.name))


@pytest.fixture
def world() -> World:
    made = World()
    made.look()
    return made


def session(at: float = START) -> Session:
    return Session(
        id="s1", digest=digest_of(TEXT), name="lin", role="operator", door="password", created_at=at, used_at=at
    )


def test_a_session_ends_when_it_was_not_used_for_a_while(world: World) -> None:
    world.kept = (session(),)
    world.look()
    world.now += 599
    assert world.knows()
    world.now += 599
    assert world.knows()  # it was used meanwhile
    world.now += 600
    assert not world.knows()


def test_an_open_page_is_use_and_is_cut_off_at_the_longest(world: World) -> None:
    world.kept = (session(),)
    world.look()
    with world.open_page():
        for _ in range(35):
            world.now += 100
            world.look()
        assert world.cut_off == []
        world.now += 100
        world.look()
        assert world.cut_off == ["lin"]
    assert not world.knows()


def test_a_session_that_the_database_has_no_more_is_cut_off(world: World) -> None:
    world.kept = (session(),)
    world.look()
    with world.open_page():
        world.kept = ()
        world.now += 2
        world.look()
        assert world.cut_off == ["lin"]


def test_what_was_begun_while_the_database_answered_is_kept(world: World) -> None:
    world.now += 1
    world.keyring.sessions.begin(session())
    world.look(asked_at=START)  # an answer of before
    assert world.knows()
    world.now += 2
    world.look()  # and one that could have held it
    assert not world.knows()


def test_what_was_ended_while_the_database_answered_stays_ended(world: World) -> None:
    world.kept = (session(),)
    world.look()
    token = world.keyring.find(TEXT)
    assert token is not None
    with world.open_page():
        world.keyring.end_session(token)
        assert world.cut_off == ["lin"]
    world.look(asked_at=START - 1)
    assert not world.knows()


def test_the_database_is_told_once_of_each_use(world: World) -> None:
    world.kept = (session(),)
    world.look()
    world.now += 5
    assert world.knows()
    assert world.keyring.sessions.take_used() == {"s1": START + 5}
    assert world.keyring.sessions.take_used() == {}


def test_a_use_that_another_server_saw_counts(world: World) -> None:
    world.kept = (session(),)
    world.look()
    world.now += 700
    other = Session(
        id="s1", digest=digest_of(TEXT), name="lin", role="operator", door="password", created_at=START,
        used_at=START + 650,
    )  # fmt: skip
    world.kept = (other,)
    world.look()
    assert world.knows()


def test_where_people_have_names_only_they_look_and_operators_act() -> None:
    nobody = World(with_users=False)
    nobody.look()
    assert not nobody.keyring.asks_for("reader")
    somebody = World()
    somebody.look()
    assert somebody.keyring.asks_for("reader")
    assert somebody.keyring.asks_for("operator")
    assert not somebody.keyring.asks_for("agent")
    elsewhere = Keyring([fixed("token", "agent", "send")], lambda: START, knows_others=True)
    assert elsewhere.asks_for("operator")
    assert elsewhere.asks_for("agent")


@pytest.mark.parametrize(("idle_seconds", "seconds"), [(SESSION_SECONDS_MIN, 20.0), (86400.0, USED_SECONDS)])
def test_other_servers_hear_of_a_use_long_before_the_session_is_idle_to_them(
    idle_seconds: float, seconds: float
) -> None:
    assert tell_uses_every(Lasts(idle_seconds, 86400.0)) * LOOK_SECONDS == seconds
