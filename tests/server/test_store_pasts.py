"""What the memory of a run was is kept over restarts of the server, for longer than its history."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.house import START, House
from tests.server.running_server import serving, settings_in

from oomwatch.core.past import Levels, Past, PhaseLevel
from oomwatch.core.rule import RuleSet
from oomwatch.store.store import Store
from oomwatch.trace import TraceWriter, read_trace, replay
from oomwatch.web.restart import restore

DAY = 86_400.0
LEVELS = Levels(
    at=START,
    step=40,
    phases=(PhaseLevel("ref", 30e9),),
    floor_bytes=7.9e9,
    length_mean_tokens=812.5,
    config={"trainer.nnodes": 1, "ref.offload": True},
)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    yield opened
    opened.close()


def test_what_was_kept_is_read_back_and_replaced(store: Store) -> None:
    store.keep_pasts([Past(run="a", now=LEVELS), Past(run="b", good=LEVELS)], START)
    store.keep_pasts([Past(run="a", good=LEVELS)], START + 60)
    assert store.pasts() == [Past(run="b", good=LEVELS), Past(run="a", good=LEVELS)]


def test_it_outlives_the_history_and_not_for_ever(store: Store) -> None:
    store.keep_pasts([Past(run="a", now=LEVELS)], START)
    store.prune(START + 80 * DAY, keep_seconds=DAY)
    assert [past.run for past in store.pasts()] == ["a"]
    store.prune(START + 100 * DAY, keep_seconds=DAY)
    assert store.pasts() == []


def test_a_server_that_starts_again_knows_it_and_its_recording_says_so(store: Store, tmp_path: Path) -> None:
    store.keep_pasts([Past(run="a", now=LEVELS)], START)
    house = House()
    writer = TraceWriter(tmp_path / "trace.jsonl")
    house.service._judge.recorder = writer
    restore(house.service, store)
    writer.close()
    assert house.service.engine.fleet.pasts.of("a") == Past(run="a", now=LEVELS)
    lines = list(read_trace(tmp_path / "trace.jsonl"))
    assert [line.remembered for line in lines if line.remembered] == [(Past(run="a", now=LEVELS),)]
    assert list(replay(lines, RuleSet())) == []


def test_a_server_keeps_what_is_new_when_it_stops(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with serving(settings) as server:
        server.parts.service.engine.fleet.pasts.update("a", LEVELS)
    with serving(settings) as server:
        assert server.parts.service.engine.fleet.pasts.of("a") == Past(run="a", now=LEVELS)
