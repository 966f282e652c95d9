"""What comes to an end every hour, alerts and runs, is remembered up to a number."""

import msgspec
from tests.server.notify_samples import transition

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.past import RUNS_KEPT, Levels, Pasts
from oomwatch.service.adviser import KEPT, Adviser
from oomwatch.service.board import ENDED_KEPT, Board
from oomwatch.service.defects import Defects


def test_of_alerts_that_ended_the_board_keeps_the_latest() -> None:
    board, fired = Board(lambda said: said), transition()
    for number in range(ENDED_KEPT + 5):
        at = fired.at + number
        ended = msgspec.structs.replace(fired, id=str(number), state="resolved", at=at, reason="recovered")
        board.take(ended, at)
    assert [one.id for one in board.all()] == [str(number) for number in range(5, ENDED_KEPT + 5)]


def test_of_runs_that_are_over_the_latest_are_remembered() -> None:
    pasts = Pasts()
    for number in range(RUNS_KEPT + 5):
        pasts.begins(str(number), segment=0, step=1)
        pasts.update(str(number), Levels(at=float(number), step=1, phases=()))
    assert [pasts.of(str(number)) is not None for number in (0, 4, 5, RUNS_KEPT + 4)] == [False, False, True, True]
    assert pasts.begins("4", segment=1, step=1) is False  # nothing is known of when it was here


def test_of_what_to_change_for_alerts_the_latest_is_remembered() -> None:
    fired = transition(causes=(wire.Cause(cause="leak", score=0.9),))
    advise = Adviser(Fleet(), Defects(lambda: 0.0))
    for number in range(KEPT + 1):
        assert advise(msgspec.structs.replace(fired, id=str(number))).remedies
    ended = [msgspec.structs.replace(fired, id=str(number), state="resolved") for number in (0, 1, KEPT)]
    assert [bool(advise(one).remedies) for one in ended] == [False, True, True]
