"""What those are told of a node's GPUs who did not ask for that node."""

from oomwatch import wire
from oomwatch.service.views import cards_of


def _card(gpu: str, name: str = "H100", gib: int = 80) -> wire.GpuFacts:
    return wire.GpuFacts(gpu=gpu, uuid=f"GPU-{gpu}", name=name, total_bytes=gib * 2**30, mig=":" in gpu)


def test_cards_that_are_alike_are_told_once() -> None:
    alike = wire.CardsAlike(gpus=("0", "1", "2"), name="H100", total_bytes=80 * 2**30)
    assert cards_of((_card("0"), _card("1"), _card("2"))) == (alike,)


def test_the_order_of_the_cards_stays_whatever_stands_between_those_that_are_alike() -> None:
    cards = (_card("0"), _card("1:0", gib=10), _card("1:1", gib=20), _card("2"), _card("3", "A100"))
    told = [gpu for alike in cards_of(cards) for gpu in alike.gpus]
    assert told == ["0", "1:0", "1:1", "2", "3"]
    assert [alike.total_bytes // 2**30 for alike in cards_of(cards)] == [80, 10, 20, 80, 80]
    assert [alike.mig for alike in cards_of(cards)] == [False, True, True, False, False]


def test_a_node_without_cards_has_none_to_tell_of() -> None:
    assert cards_of(()) == ()
