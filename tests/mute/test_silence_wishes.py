"""What somebody asks for becomes a silence, or a sentence that says why it does not."""

import re

import pytest
from tests.mute.samples import matchers, silence

from oomwatch import wire
from oomwatch.service.silences import PATTERNS_MAX, SECONDS_MAX, SILENCES_MAX, Wish, check_room, silence_of

NOW = 1_700_000_000.0


def wish(**changes: object) -> Wish:
    told: dict[str, object] = {"match": ("node=gpu-07",), "created_by": "lin"}
    return Wish(**{**told, **({} if "ends_at" in changes else {"duration": "2h"}), **changes})  # type: ignore[arg-type]


def test_a_silence_begins_now_and_lasts_for_its_duration() -> None:
    assert silence_of(wish(note=" new driver "), NOW, "s1") == wire.Silence(
        id="s1",
        matchers=matchers("node=gpu-07"),
        starts_at=NOW,
        ends_at=NOW + 7200,
        created_by="lin",
        created_at=NOW,
        note="new driver",
    )


def test_a_silence_can_begin_later_and_have_its_end_given() -> None:
    made = silence_of(wish(starts_at=NOW + 10, ends_at=NOW + 70), NOW, "s1")
    assert (made.starts_at, made.ends_at) == (NOW + 10, NOW + 70)
    later = silence_of(wish(starts_at=NOW + 10, duration=60), NOW, "s1")
    assert (later.starts_at, later.ends_at) == (NOW + 10, NOW + 70)


def test_a_beginning_that_was_now_when_it_was_written_is_now() -> None:
    assert silence_of(wish(starts_at=NOW - 5), NOW, "s1").starts_at == NOW


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"match": ()}, "match: say which alerts"),
        ({"match": ("node=x",) * 21}, "match: more than 20"),
        ({"match": ("colour=red",)}, 'match: an alert has no label "colour"'),
        ({"match": ('node=~"((("',)}, "match: "),
        ({"created_by": "  "}, "created_by: say who you are"),
        ({"created_by": "x" * 101}, "created_by: say who you are"),
        ({"created_by": "a\x1b[2J"}, "created_by: say who you are"),
        ({"note": "x" * 1001}, "note: this is longer"),
        ({"note": "a\x1b[2J"}, "note: it holds control characters"),
        ({"duration": None}, "exactly one of duration and ends_at"),
        ({"duration": "2h", "ends_at": NOW + 5}, "exactly one of duration and ends_at"),
        ({"duration": "soon"}, "duration: "),
        ({"duration": "0s"}, "duration: a silence has to last"),
        ({"duration": "367d"}, "duration: a silence lasts for 366d at most"),
        ({"ends_at": NOW - 1}, "ends_at: this is in the past"),
        ({"starts_at": NOW + 50, "ends_at": NOW + 20}, "ends_at: a silence has to last"),
        ({"starts_at": NOW - 3600}, "starts_at: this is in the past"),
        ({"starts_at": NOW + SECONDS_MAX + 1}, "starts_at: this is more than a year ahead"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        silence_of(wish(**changes), NOW, "s1")


def test_there_is_an_end_to_silences_and_to_the_patterns_in_them() -> None:
    check_room([silence("node=n")] * SILENCES_MAX)
    with pytest.raises(ValueError, match="1000 silences already"):
        check_room([silence("node=n")] * (SILENCES_MAX + 1))
    many = [silence(*(f'node=~"{number}-{part}"' for part in range(20))) for number in range(PATTERNS_MAX // 20)]
    check_room(many + many)
    with pytest.raises(ValueError, match="1000 regular expressions"):
        check_room([*many, silence('node!~"one more"')])
