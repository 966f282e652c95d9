"""`oomwatch alerts` and `oomwatch silence`, as people use them, with a real server."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.house import hello, sample
from tests.server.running_server import AgentClient, RunningServer, serving, settings_in, until

from oomwatch.__main__ import main
from oomwatch.commands.tables import aligned

Output = pytest.CaptureFixture[str]
NODE = 'node="gpu-07"'


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    """A server with one alert that fires, named by the environment."""
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello("gpu-07", sent_at=time.time(), run="qwen"))
        agent.say(sample(1, 79, time.time()))
        until("the alert", lambda: server.get("/api/v1/alerts?state=firing").json())
        monkeypatch.setenv("OOMWATCH_SERVER", server.url)
        monkeypatch.setenv("LOGNAME", "lin")
        yield server


def _id(server: RunningServer) -> str:
    return str(server.get("/api/v1/alerts?state=firing").json()[0]["id"])


def test_alerts_are_a_table(server: RunningServer, capsys: Output) -> None:
    assert main(["alerts"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["SEVERITY", "ALERT", "WHERE", "SINCE", "VALUE", "MUTED", "OR", "CARE", "ID"]
    assert re.match(r"warning +full +gpu-07 GPU 0 \(qwen\) +[\d.]+ s ago +99 % +" + _id(server), row)


def test_alerts_can_be_chosen(server: RunningServer, capsys: Output) -> None:  # noqa: ARG001 - it is asked
    for flags in (["--run", "other"], ["--node", "other"], ["--alert", "other"], ["--state", "resolved"]):
        assert main(["alerts", *flags]) == 0
        assert capsys.readouterr().out == "no alerts\n"
    assert main(["alerts", "--state", "all", "--run", "qwen", "--json"]) == 0
    assert [row["alert"] for row in json.loads(capsys.readouterr().out)] == ["full"]


def test_an_alert_is_taken_care_of_and_that_is_taken_back(server: RunningServer, capsys: Output) -> None:
    alert = _id(server)
    assert main(["alerts", "ack", alert, "--note", "on it"]) == 0
    assert capsys.readouterr().out == f"lin takes care: {alert}\n"
    assert main(["alerts"]) == 0
    assert re.search(rf" lin +{alert}$", capsys.readouterr().out.strip())
    assert main(["alerts", "show", alert]) == 0
    told = capsys.readouterr().out
    assert re.search(r"lin takes care since .* UTC: on it", told)
    assert "advice: lower gpu_memory_utilization" in told
    assert main(["alerts", "unack", alert]) == 0
    assert main(["alerts", "--json", "show", alert]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["alert"]["acknowledged"] is None


def test_all_that_match_are_taken_care_of(server: RunningServer, capsys: Output) -> None:
    assert main(["alerts", "ack", "--match", NODE, "--by", "mei"]) == 0
    assert capsys.readouterr().out == f"mei takes care: {_id(server)}\n"
    assert main(["alerts", "ack", "--match", "node=other", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"alerts": []}


def test_an_alert_or_matchers_have_to_be_named(capsys: Output) -> None:
    assert main(["alerts", "ack"]) == 2
    assert "name an alert by its ID" in capsys.readouterr().err


def test_a_silence_is_previewed_made_listed_and_ended(server: RunningServer, capsys: Output) -> None:
    assert main(["silence", "add", NODE, "--for", "2h", "--preview"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("would hide 1 alert that fires now\n")
    assert "of the last 7 days: 1 of 1 alert, 0 of them critical" in told
    assert server.get("/api/v1/silences").json() == []

    assert main(["silence", "add", NODE, "--for", "2h", "--note", "new driver"]) == 0
    (made,) = server.get("/api/v1/silences").json()
    assert capsys.readouterr().out.startswith(f"silence {made['id']} until ")
    assert main(["silence", "list"]) == 0
    assert re.search(rf'active +node="gpu-07" .* UTC +lin +new driver +{made["id"]}', capsys.readouterr().out)
    assert main(["alerts"]) == 0
    assert " silence " in capsys.readouterr().out

    assert main(["silence", "end", made["id"]]) == 0
    assert main(["silence", "list", "--json"]) == 0
    assert [one["state"] for one in json.loads(capsys.readouterr().out.splitlines()[-1])] == ["ended"]


def test_a_preview_warns(server: RunningServer, capsys: Output) -> None:  # noqa: ARG001 - it is asked
    assert main(["silence", "preview", 'severity=~".*"']) == 0
    assert "careful: it leaves nothing out" in capsys.readouterr().out


def test_what_the_server_refuses_is_said_in_one_line(server: RunningServer, capsys: Output) -> None:
    for command, sentence in (
        (["silence", "add", "nod=x", "--for", "2h"], 'an alert has no label "nod"'),
        (["silence", "add", NODE, "--for", "soon"], 'duration: "soon" is no duration'),
        (["silence", "end", "x"], 'there is no silence "x"'),
        (["alerts", "show", "none"], 'there is no alert "none"'),
        (["alerts", "ack", "none"], 'there is no alert "none"'),
    ):
        assert main(command) == 1
        said = capsys.readouterr().err
        assert (said.count("\n"), sentence in said) == (1, True), said
    assert server.get("/api/v1/silences").json() == []


def test_a_server_that_cannot_be_reached_is_said_in_one_line(capsys: Output) -> None:
    assert main(["alerts", "--server", "http://127.0.0.1:1"]) == 1
    assert capsys.readouterr().err.startswith("oomwatch: http://127.0.0.1:1 cannot be reached")


def test_what_agents_call_things_cannot_command_a_terminal() -> None:
    assert aligned([["NODE", "ID"], ["a\x1b[2Jb\n", "1"]]) == ["NODE     ID", "a\ufffd[2Jb\ufffd  1"]
