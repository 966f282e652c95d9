"""Names come from agents, and an agent may say anything."""

import logging

from tests.core.story import SHIPPED, Story

from oomwatch import wire
from oomwatch.advice import advise
from oomwatch.serve import LogFormatter


def test_a_name_forges_no_line_of_the_log() -> None:
    record = logging.makeLogRecord({"msg": "agent of node %s", "args": ("n\n12:00 ERROR it is over\x1b[2J\u202e",)})
    assert LogFormatter("12:00 %(message)s").format(record) == (
        "12:00 agent of node n\n    12:00 ERROR it is over\ufffd[2J\ufffd"
    )


def test_a_cause_of_another_version_is_passed_on_as_it_was_told() -> None:
    causes = (wire.Cause(cause="of tomorrow", score=1.0),)
    told = wire.Transition(
        id="i", alert="a", severity="warning", state="firing", at=1.0, started_at=1.0, labels={"node": "n"},
        causes=causes,
    )  # fmt: skip
    assert advise(told, Story(SHIPPED).engine.fleet) == told
