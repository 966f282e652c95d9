"""Alerts in the server's log."""

import logging

import msgspec
import pytest

from oomwatch import wire
from oomwatch.service.logbook import LINES_A_SECOND, Logbook

FIRING = wire.Transition(
    id="1", alert="full", severity="warning", state="firing", at=9, started_at=8, labels={"node": "n1", "gpu": "0"},
    texts={language: wire.AlertText(summary=f"GPU 0 of n1, {language}", description="") for language in ("en", "zh")},
)  # fmt: skip
OVER = msgspec.structs.replace(FIRING, state="resolved", reason="run ended")
CRITICAL = msgspec.structs.replace(FIRING, severity="critical", change="severity", simulated=True)
Log = pytest.LogCaptureFixture


class Steady:
    now = 5.5

    def __call__(self) -> float:
        return self.now


def lines(log: Log) -> list[tuple[int, str]]:
    return [(one.levelno, one.getMessage()) for one in log.records]


def test_an_alert_that_fires_gets_worse_and_ends_is_a_line_each(caplog: Log) -> None:
    caplog.set_level(logging.INFO)
    Logbook(Steady()).note([FIRING, CRITICAL, OVER])
    assert lines(caplog) == [
        (logging.WARNING, "alert full, warning: GPU 0 of n1, en"),
        (logging.WARNING, "alert full, critical: simulated: GPU 0 of n1, en"),
        (logging.INFO, "alert full is over (run ended): GPU 0 of n1, en"),
    ]


@pytest.mark.parametrize(
    "change",
    [{"state": "pending"}, {"quiet": True}, {"change": "muted"}, {"change": "outcome"}, {"change": "acknowledged"}],
)
def test_what_tells_of_no_new_state_is_no_line(change: dict[str, object], caplog: Log) -> None:
    caplog.set_level(logging.INFO)
    Logbook(Steady()).note([msgspec.structs.replace(FIRING, **change)])
    assert lines(caplog) == []


def test_what_is_for_information_alone_is_no_warning(caplog: Log) -> None:
    caplog.set_level(logging.INFO)
    Logbook(Steady()).note([msgspec.structs.replace(FIRING, severity="info")])
    assert [level for level, _ in lines(caplog)] == [logging.INFO]


def test_an_alert_without_words_names_its_subject(caplog: Log) -> None:
    Logbook(Steady()).note([msgspec.structs.replace(FIRING, texts={})])
    assert lines(caplog) == [(logging.WARNING, "alert full, warning: node n1, gpu 0")]


def test_a_storm_is_so_many_lines_a_second_and_one_that_says_so(caplog: Log) -> None:
    steady = Steady()
    logbook = Logbook(steady)
    logbook.note([FIRING] * 500)
    logbook.note([FIRING] * 500)
    assert len(lines(caplog)) == LINES_A_SECOND + 1
    assert "oomwatch alerts --state all" in lines(caplog)[-1][1]
    steady.now += 1
    logbook.note([FIRING])
    assert len(lines(caplog)) == LINES_A_SECOND + 2
