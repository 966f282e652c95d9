"""When the loss of a GPU is news."""

import pytest

from oomwatch import wire
from oomwatch_agent.cards.losses import LOSS_XIDS, Losses


class Watched:
    """One GPU, "0", watched by a clock that the test moves."""

    def __init__(self) -> None:
        self.losses = Losses("nvml")
        self.now = 1000.0

    def reads(self, status: wire.GpuStatus, *xids: int, after_seconds: float = 1.0) -> list[int | None]:
        """The Xids (None: no Xid) of the events that this reading gives."""
        self.now += after_seconds
        sample = wire.GpuSample(gpu="0", status=status)
        found = self.losses.news([sample], [("0", xid) for xid in xids], {"0": "0000:3B:00.0"}, self.now)
        assert all(isinstance(each.body, wire.GpuLost) and each.body.pci_bus_id == "0000:3B:00.0" for each in found)
        return [each.body.xid for each in found if isinstance(each.body, wire.GpuLost)]


@pytest.fixture
def gpu() -> Watched:
    return Watched()


def test_a_gpu_that_turns_lost_is_news_once(gpu: Watched) -> None:
    assert gpu.reads("ok") == []
    assert gpu.reads("lost") == [None]
    assert gpu.reads("lost") == []
    assert gpu.reads("lost", after_seconds=3600) == []


def test_lost_at_first_sight_is_no_news(gpu: Watched) -> None:
    assert gpu.reads("lost") == []
    assert gpu.reads("lost") == []


def test_a_gpu_that_was_known_to_answer_is_news_at_its_first_reading(gpu: Watched) -> None:
    gpu.losses.know(["0"])
    assert gpu.reads("lost") == [None]


def test_silence_in_between_changes_nothing(gpu: Watched) -> None:
    gpu.reads("ok")
    gpu.reads("no_data")
    assert gpu.reads("lost") == [None]
    gpu.reads("no_data")
    assert gpu.reads("lost", after_seconds=3600) == []


def test_a_second_loss_after_a_recovery_is_news(gpu: Watched) -> None:
    gpu.reads("ok")
    gpu.reads("lost")
    gpu.reads("ok", after_seconds=3600)
    assert gpu.reads("lost") == [None]


def test_the_xid_and_the_drivers_own_word_are_one_loss(gpu: Watched) -> None:
    gpu.reads("ok")
    assert gpu.reads("ok", 79) == [79]
    assert gpu.reads("lost", 79) == []


@pytest.mark.parametrize("xid", sorted(LOSS_XIDS))
def test_each_xid_of_a_loss_is_news(gpu: Watched, xid: int) -> None:
    assert gpu.reads("ok", xid) == [xid]


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 48, 63, 74, 94, 154])
def test_other_xids_are_not(gpu: Watched, xid: int) -> None:
    assert gpu.reads("ok", xid) == []
