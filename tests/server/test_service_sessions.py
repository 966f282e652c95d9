"""Who may call itself by a node's name."""

import pytest
from tests.server.house import House, hello, sample

from oomwatch import wire
from oomwatch.service.sessions import RefusalError


def test_a_second_agent_of_the_same_name_is_turned_away_while_the_first_lives() -> None:
    house = House()
    session, _ = house.connect()
    house.pass_time(4)
    house.service.reception.take(session, sample(1, 10, at=house.now))
    house.pass_time(4)
    with pytest.raises(RefusalError, match='calls itself "gpu-07"') as refused:
        house.connect(hello(session="s2"))
    assert refused.value.refused.reason is wire.RefusedReason.NODE_TAKEN
    assert refused.value.refused.retry


def test_a_connection_that_has_brought_nothing_for_long_gives_way() -> None:
    house = House()
    _, old = house.connect()
    house.pass_time(6)
    session, _ = house.connect(hello(session="s2", sent_at=house.now))
    assert session.session == "s2"
    assert old.dismissed == [None]


def test_an_agent_that_connects_again_replaces_its_own_old_connection() -> None:
    house = House()
    first, old = house.connect()
    second, _ = house.connect()
    assert second is first
    assert old.dismissed == [None]


def test_the_end_of_a_replaced_connection_does_not_disconnect_its_successor() -> None:
    house = House()
    session, old = house.connect()
    _, new = house.connect()
    house.service.reception.leave(session, old)
    assert session.peer is new


def test_a_new_start_of_an_agent_counts_from_one_again() -> None:
    house = House()
    session, agent = house.connect()
    house.service.reception.take(session, sample(7, 10))
    house.flush()
    house.service.reception.leave(session, agent)
    restarted, successor = house.connect(hello(session="s2"))
    house.service.reception.take(restarted, sample(1, 10))
    house.flush()
    assert successor.acknowledged == [1]


def test_a_session_of_an_earlier_life_of_the_server_goes_on_where_it_was_stored() -> None:
    house = House()
    session, agent = house.connect(stored_seq=41)
    for seq in (40, 41, 42):
        house.service.reception.take(session, sample(seq, 10))
    house.flush()
    assert [one.seq for one in house.shelf.messages if isinstance(one, wire.Sample)] == [42]
    assert agent.acknowledged == [42]


def test_a_server_that_goes_down_takes_no_agents() -> None:
    house = House()
    house.service.reception.is_closed = True
    with pytest.raises(RefusalError) as refused:
        house.connect()
    assert refused.value.refused.reason is wire.RefusedReason.SHUTTING_DOWN
