"""When another comes to lead, the one that led before has ended all that it had on its way."""

from collections.abc import Callable

import pytest
from tests.cluster.trio import Server, Trio, Unreachable

from oomwatch.notify.notifier import STOP_SECONDS


def take_lease_away(trio: Trio, old: str, new: str) -> None:
    """PostgreSQL was restarted, and another asked first."""
    assert trio.truth.holder == old
    trio.truth.holder = new


def cut_off(trio: Trio, old: str, new: str) -> None:
    """The leader alone cannot reach PostgreSQL, which has noticed, and does not know that another was quicker."""
    take_lease_away(trio, old, new)
    trio[old].replica.leadership._lease = Unreachable()


class Delivery:
    """What a server delivers: it takes messages while it leads, and the last one may be on its way for a while."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._until = float("-inf")

    def is_busy(self, now: float) -> bool:
        if self._server.replica.leadership.leads:
            self._until = now + STOP_SECONDS
        return now < self._until


@pytest.mark.parametrize("happens", [take_lease_away, cut_off])
def test_two_never_deliver_at_the_same_time(happens: Callable[[Trio, str, str], None]) -> None:
    trio = Trio()
    old = trio.leader()
    assert old is not None
    new = next(name for name in "abc" if name != old)
    deliveries = {name: Delivery(trio[name]) for name in "abc"}
    happens(trio, old, new)
    busy: list[list[str]] = []
    trio.step(15, lambda: busy.append([name for name, one in deliveries.items() if one.is_busy(trio.now)]))
    assert [names for names in busy if len(names) > 1] == []
    assert busy[0] == [old]
    assert busy[-1] == [new]
