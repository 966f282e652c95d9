"""The law: room left divided by the worst rate seen lately, held between two paces. And what cannot wait."""

import pytest

from oomwatch_agent.looker import Paces
from oomwatch_agent.nearing import HALF_LIFE_SECONDS, LOOKS_BEFORE_FULL, Nearing, Peak

GIB = 2**30
CARD = 80 * GIB


def _seen(*told: tuple[float, float]) -> Nearing:
    """A card of which samples told so many GiB at these seconds."""
    memory = Nearing()
    for at, gib in told:
        memory.tell(int(gib * GIB), CARD, at)
    return memory


def test_a_memory_that_never_filled_is_in_no_hurry() -> None:
    assert _seen((0, 79), (1, 79), (2, 60)).seconds_between_looks(2) == float("inf")


def test_the_less_room_there_is_at_the_same_rate_the_sooner_comes_the_next_look() -> None:
    assert _seen((0, 50), (1, 60)).seconds_between_looks(1) == pytest.approx(20 / 10 / LOOKS_BEFORE_FULL)
    assert _seen((0, 68), (1, 78)).seconds_between_looks(1) == pytest.approx(2 / 10 / LOOKS_BEFORE_FULL)


def test_the_worst_rate_counts_and_not_the_last_one() -> None:
    memory = _seen((0, 50), (1, 70), (2, 71))
    assert memory.seconds_between_looks(2) == pytest.approx(9 / 20 / LOOKS_BEFORE_FULL, rel=0.02)


def test_a_card_that_stays_full_and_still_is_looked_at_more_and_more_seldom() -> None:
    memory = _seen((0, 0), (1, 78))
    first = memory.seconds_between_looks(1)
    for at in range(2, 602):
        memory.tell(78 * GIB, CARD, at)
    assert first < 0.01
    assert memory.seconds_between_looks(601) == pytest.approx(first * 2 ** (600 / HALF_LIFE_SECONDS))


def test_a_card_that_every_step_fills_and_leaves_is_watched_closely() -> None:
    memory = Nearing()
    for at in range(300):
        memory.tell((76 if at % 60 > 40 else 30) * GIB, CARD, at)
    assert memory.seconds_between_looks(300) < 0.1


def test_no_room_at_all_is_no_negative_time() -> None:
    assert _seen((0, 70), (1, 81)).seconds_between_looks(1) == 0


def test_what_only_a_look_saw_is_told_once() -> None:
    memory = _seen((0, 40))
    memory.look(70 * GIB, CARD, 0.3)
    memory.look(78 * GIB, CARD, 0.5)
    memory.look(50 * GIB, CARD, 0.7)
    assert memory.tell(41 * GIB, CARD, 1.0) == Peak(78 * GIB, 0.5)
    assert memory.tell(41 * GIB, CARD, 2.0) is None


@pytest.mark.parametrize(("before", "looked", "after"), [(60, 60, 10), (10, 60, 60), (10, 30, 60)])
def test_what_the_samples_around_it_tell_is_no_peak(before: int, looked: int, after: int) -> None:
    memory = _seen((0, before))
    memory.look(looked * GIB, CARD, 0.5)
    assert memory.tell(after * GIB, CARD, 1.0) is None


@pytest.mark.parametrize(("used_gib", "news"), [(44.0, True), (43.0, False), (30.0, False)])
def test_a_steep_rise_cannot_wait(used_gib: float, news: bool) -> None:
    assert _seen((0, 40)).look(int(used_gib * GIB), CARD, 0.2) is news


def test_near_the_limit_a_small_rise_to_a_new_height_cannot_wait() -> None:
    assert _seen((0, 77)).look(int(77.8 * GIB), CARD, 0.2)
    assert not _seen((0, 60)).look(int(60.8 * GIB), CARD, 0.2)


def test_a_height_that_was_told_within_the_last_minute_is_no_news() -> None:
    memory = _seen((0, 77.9), (1, 77))
    assert not memory.look(int(77.8 * GIB), CARD, 1.5)
    memory.tell(77 * GIB, CARD, 62.0)
    assert memory.look(int(77.8 * GIB), CARD, 62.5)


def test_the_last_bytes_of_a_full_card_are_no_flood_of_samples() -> None:
    assert not _seen((0, 79.9)).look(int(79.95 * GIB), CARD, 0.2)


def test_nothing_is_news_before_anything_was_told() -> None:
    assert not Nearing().look(79 * GIB, CARD, 0.0)


@pytest.mark.parametrize(
    ("wanted", "looks", "ease", "pause"),
    [
        (float("inf"), 4, 1, 0.25),  # nothing fills
        (0.15, 4, 1, 0.15),
        (0.001, 4, 1, 0.1),  # no faster than was asked
        (float("inf"), 1, 1, None),  # left to the samples
        (0.3, 1, 1, 0.3),
        (0.001, 4, 4, 0.4),  # spared
        (float("inf"), 4, 4, None),
    ],
)
def test_a_pause_is_the_laws_between_two_bounds(wanted: float, looks: int, ease: float, pause: float | None) -> None:
    paces = Paces(1.0, 0.1)
    paces.ease = ease
    assert paces.pause(wanted, looks) == pause


def test_a_fastest_pace_of_the_interval_is_no_look_at_all() -> None:
    assert Paces(1.0, 1.0).never
    assert not Paces(1.0, 0.1).never


def test_a_rise_that_was_hurried_is_not_hurried_again_until_it_is_told_or_rises_on() -> None:
    """A sample may come without the card: its source is slow, or hangs."""
    memory = Nearing()
    memory.tell(10 * GIB, 80 * GIB, 0.0)
    assert memory.look(30 * GIB, 80 * GIB, 0.1)
    assert not memory.look(30 * GIB, 80 * GIB, 0.2)
    assert not memory.look(31 * GIB, 80 * GIB, 0.3)
    assert memory.look(40 * GIB, 80 * GIB, 0.4)
    memory.tell(10 * GIB, 80 * GIB, 1.0)
    assert memory.look(30 * GIB, 80 * GIB, 1.1)


def test_a_rate_counts_from_the_last_look_however_long_a_card_stood_still() -> None:
    memory = _seen((0, 50))
    memory.stood_still(0.9)
    memory.tell(60 * GIB, CARD, 1.0)
    assert memory.seconds_between_looks(1.0) == pytest.approx(20 / 100 / LOOKS_BEFORE_FULL)


def test_a_look_that_saw_no_change_is_no_older_than_what_was_told_since() -> None:
    memory = _seen((0, 50), (1, 50))
    memory.stood_still(0.5)
    memory.tell(60 * GIB, CARD, 2.0)
    assert memory.seconds_between_looks(2.0) == pytest.approx(20 / 10 / LOOKS_BEFORE_FULL)
