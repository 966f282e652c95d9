"""Random kills and cuts among server, agents, receiver and database: nothing is lost, doubled or invented.

Always the same blows at the same times; `make chaos` gives others for as long as you like.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.crowd import drop_cut_connections
from tests.chaos.run import chaos
from tests.chaos.sites import alone

SEED, SECONDS = 7, 15.0


@pytest.fixture(autouse=True)
def cut_connections_are_dropped_here() -> Iterator[None]:
    yield
    drop_cut_connections()


@pytest.mark.acceptance
def test_whatever_is_killed_or_cut_each_transition_is_stored_told_and_seen_once(
    tmp_path: Path, nvml_library: Path
) -> None:
    outcome, timeline = chaos(tmp_path, alone, seed=SEED, seconds=SECONDS, library=nvml_library)
    assert not outcome.wrong, "\n".join([f"seed {SEED}", *timeline.lines, *outcome.wrong])
    assert outcome.blows.total() > 3
    print(outcome.in_words())
