"""What has to be freed, from what is known of a card: the causes are ranked by it, and remedies are sized by it."""

import pytest

from oomwatch import wire
from oomwatch.core.facts import Facts, PhaseFacts
from oomwatch.core.needs import with_needs
from oomwatch.core.settings import Settings
from oomwatch.core.verdict import Verdict

GIB = 2.0**30
UPDATE = PhaseFacts("update_actor", 60 * GIB, 40 * GIB, 0.0, 0.0)


def needed_gib(told: dict[str, wire.Fact]) -> float:
    """Of a card of 80 GiB whose update takes 60 at 2,000 tokens, where 4,000 are allowed."""
    known = Facts(
        topic="device",
        verdict=told,
        capacity_bytes=80 * GIB,
        peak_bytes=60 * GIB,
        phases=(UPDATE,),
        steps=30,
        length_mean_tokens=2000.0,
        settings=Settings(response_cap_tokens=4000),
    )
    found = with_needs(known, Verdict("active", facts=told)).needed_bytes
    assert found is not None
    return found / GIB


def test_a_rule_that_looked_at_the_longest_response_asks_for_room_for_it() -> None:
    """Twice the tokens take the update's 20 GiB of work once more: 80 GiB, of which 76 are safe."""
    assert needed_gib({"cap_tokens": 4000}) == pytest.approx(4.0)


def test_where_lengths_are_no_matter_the_longest_response_is_none_either() -> None:
    assert needed_gib({}) == 0.0


def test_what_a_rule_foretells_is_needed() -> None:
    assert needed_gib({"predicted_bytes": 90 * GIB}) == pytest.approx(14.0)
