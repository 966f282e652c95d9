"""The outbox numbers messages, keeps them until they are stored, and is bounded in every way."""

import pytest

from oomwatch import wire
from oomwatch_agent.outbox import Outbox


def _sample(at: float = 0.0) -> wire.Sample:
    return wire.Sample(seq=0, at=at)


def _filled(count: int) -> Outbox:
    outbox = Outbox()
    for second in range(count):
        outbox.add(_sample(second), now=float(second))
    return outbox


def _seqs(outbox: Outbox, after: int = 0, limit: int = 1000) -> list[int]:
    return [frame.seq for frame in outbox.after(after, limit)]


def test_messages_are_numbered_from_one_without_gaps() -> None:
    outbox = Outbox()
    assert [outbox.add(message, now=0.0) for message in (_sample(), _sample(), wire.Bye(seq=0, at=0.0))] == [1, 2, 3]


def test_a_frame_holds_the_message_with_its_number() -> None:
    outbox = Outbox()
    outbox.add(_sample(at=12.5), now=0.0)
    assert wire.decode_agent(outbox.after(0, 1)[0].text) == wire.Sample(seq=1, at=12.5)


def test_what_is_acknowledged_is_forgotten() -> None:
    outbox = _filled(5)
    outbox.acknowledge(3)
    assert _seqs(outbox) == [4, 5]
    assert outbox.acknowledged_seq == 3


@pytest.mark.parametrize("late", [0, 2, 3])
def test_an_old_acknowledgement_changes_nothing(late: int) -> None:
    outbox = _filled(5)
    outbox.acknowledge(3)
    outbox.acknowledge(late)
    assert (_seqs(outbox), outbox.acknowledged_seq) == ([4, 5], 3)


def test_an_acknowledgement_of_the_future_does_not_acknowledge_what_comes() -> None:
    outbox = _filled(2)
    outbox.acknowledge(99)
    outbox.add(_sample(), now=2.0)
    assert (_seqs(outbox), outbox.acknowledged_seq) == ([3], 2)


def test_a_reconnect_goes_on_after_what_the_server_has_stored() -> None:
    outbox = _filled(6)
    outbox.acknowledge(2)
    assert _seqs(outbox, after=4) == [5, 6]
    assert _seqs(outbox, after=0) == [3, 4, 5, 6], "what is forgotten cannot be sent, the rest is"


def test_frames_come_in_portions() -> None:
    outbox = _filled(10)
    assert _seqs(outbox, after=3, limit=4) == [4, 5, 6, 7]
    assert _seqs(outbox, after=10) == []


def test_after_ten_minutes_the_oldest_are_dropped_and_counted() -> None:
    outbox = Outbox()
    for second in range(700):
        outbox.add(_sample(second), now=float(second))
    assert _seqs(outbox)[0] == 100, "the message of second 99, now 600 s old"
    assert outbox.dropped_total == 99


def test_news_from_an_old_log_is_not_dropped_for_its_own_time() -> None:
    outbox = Outbox()
    outbox.add(wire.Event(seq=0, at=1.0, body=wire.Step(step=1)), now=1e6)
    assert len(outbox) == 1


def test_the_number_of_frames_is_bounded() -> None:
    outbox = Outbox(max_frames=3)
    for _ in range(5):
        outbox.add(_sample(), now=0.0)
    assert (_seqs(outbox), outbox.dropped_total) == ([3, 4, 5], 2)


def test_the_bytes_are_bounded() -> None:
    outbox = Outbox(max_bytes=1000)
    text = "x" * 400
    for _ in range(3):
        outbox.add(wire.Bye(seq=0, at=0.0, reason=text), now=0.0)
    assert (_seqs(outbox), outbox.dropped_total) == ([2, 3], 1)


def test_acknowledged_bytes_make_room() -> None:
    outbox = Outbox(max_bytes=1000)
    for seq in range(1, 20):
        outbox.add(wire.Bye(seq=0, at=0.0, reason="x" * 400), now=0.0)
        outbox.acknowledge(seq)
    assert outbox.dropped_total == 0


def test_what_was_dropped_is_not_sent_and_the_rest_is() -> None:
    outbox = Outbox(max_frames=3)
    for _ in range(5):
        outbox.add(_sample(), now=0.0)
    assert _seqs(outbox, after=1) == [3, 4, 5]
