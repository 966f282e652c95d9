"""`oomwatch storage`: what is told of a database on a terminal."""

import json
import time
from pathlib import Path

import pytest
from tests.server.house import hello, sample
from tests.server.running_server import AgentClient, serving, settings_in, until

from oomwatch.__main__ import main
from oomwatch.commands.storage import History, Storage, told

NOON = 1_699_963_200.0
MIB = 2**20


def of(**changes: object) -> Storage:
    facts: dict[str, object] = {
        "measured_at": NOON,
        "database_bytes": 497 * MIB,
        "used_bytes": 412 * MIB,
        "growth_bytes_per_day": 38.4 * MIB,
        "growth_since_at": NOON - 7200,
        "history": (
            History("raw", 1290, 241 * MIB, NOON - 86_400, NOON - 4000),
            History("10s", 0, 0, None, None),
        ),
    }
    return Storage(**{**facts, **changes})  # type: ignore[arg-type]  # as above


def test_sizes_have_units_and_growth_says_from_how_long_it_is_known() -> None:
    assert list(told(of(), NOON + 120)) == [
        "database  497.0 MiB, 412.0 MiB of it in use",
        "growth    38.4 MiB a day, by the last 2 h",
        "measured  2 min ago",
        "",
        "HISTORY               SIZE       BLOCKS  OLDEST                   NEWEST",
        "every reading         241.0 MiB  1,290   2023-11-13 12:00:00 UTC  2023-11-14 10:53:20 UTC",
        "ten seconds together  0 B        0       -                        -",
    ]


def test_growth_by_a_single_day_is_told_in_hours() -> None:
    (growth,) = (line for line in told(of(growth_since_at=NOON - 86_400), NOON) if line.startswith("growth"))
    assert growth == "growth    38.4 MiB a day, by the last 24 h"


def test_what_is_not_known_is_said_so() -> None:
    lines = list(told(of(database_bytes=None, used_bytes=None, growth_bytes_per_day=None, history=()), NOON))
    assert lines[:2] == ["database  its size is not told", "growth    not known before an hour was measured"]
    nothing = of(measured_at=None, database_bytes=None, used_bytes=None, growth_bytes_per_day=None, history=())
    assert [line.split(":")[0] for line in told(nothing, NOON)] == ["nothing is measured yet"]


def test_a_running_server_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello("gpu-07", sent_at=time.time()))
        agent.say(sample(1, 10, time.time()))
        until("a measurement", lambda: server.get("/api/v1/storage").json()["history"])
        monkeypatch.setenv("OOMWATCH_SERVER", server.url)
        assert main(["storage"]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("database  ")
        assert "growth    not known before an hour was measured" in shown
        assert main(["storage", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["growth_bytes_per_day"] is None
