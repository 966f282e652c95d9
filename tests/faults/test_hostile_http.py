"""Whoever asks the server over HTTP: too much, too slowly, packed, or in words that others are to trip over."""

import asyncio
import contextlib
import csv
import gzip
import json
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.requests import Request
from tests.faults.programs import RULES_TO
from tests.faults.strangers import Clock, stranger, until_there_are
from tests.server.house import hello, sample
from tests.server.receiver import receiving
from tests.server.running_server import AgentClient, RunningServer, serving, settings_in, until

from oomwatch import wire
from oomwatch.__main__ import main
from oomwatch.web.answers import RefusedError, content_of
from oomwatch.web.connections import Connections
from oomwatch.web.crowd import REQUESTS_MAX

EVIL_NAMES = (
    "<img src=x onerror=alert(1)>",
    "'; DROP TABLE nodes; --",
    '"} 1\nfake_metric{x="',
    "$(touch pwned) `touch pwned`",
    '=HYPERLINK("http://evil")',
    "@SUM(1+1)",
    "\x1b[2J\x1b]0;owned\x07\u202e",
    "{node} {value} %s %(x)s",
    "<!channel> <@U1|x> [a](javascript:alert(1)) *b* ```",
    "../../../etc/passwd",
)


LAUGHS = "a: &a [x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [*{old}, *{old}, *{old}, *{old}, *{old}, *{old}]\n" for old, new in pairwise("abcdefghi")
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with serving(settings_in(tmp_path)) as server:
        yield server


# ---------------------------------------------------------------- bodies


def test_a_packed_body_is_not_unpacked(server: RunningServer) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    answer = server.ask("POST", "/api/v1/silences", content=bomb, headers={"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()) == (415, {"error": "the request is packed: send it as it is"})


@pytest.mark.parametrize(
    "path", ["/api/v1/silences", "/api/v1/silences/preview", "/api/v1/doctor", "/api/v1/rules/try"]
)
def test_a_body_without_end_is_refused_at_its_bound(server: RunningServer, path: str) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(200):
            yield b"a" * 65_536

    assert server.ask("POST", path, content=endless()).status_code == 413


def test_a_body_that_never_comes_is_waited_for_so_long() -> None:
    async def silence() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    request = Request({"type": "http", "method": "POST", "headers": []}, silence)
    with pytest.raises(RefusedError) as caught:
        asyncio.run(content_of(request, 1000, within_seconds=0.05))
    assert caught.value.status == 408


@pytest.mark.parametrize("deep", ["[", '{"a":', '[{"a":['], ids=["lists", "mappings", "both"])
def test_json_within_json_is_refused_with_a_sentence(server: RunningServer, deep: str) -> None:
    answer = server.ask("POST", "/api/v1/silences", content=(deep * 8_000).encode())
    assert answer.status_code == 400
    assert "not understood" in answer.json()["error"]


@pytest.mark.parametrize(
    "text",
    [
        LAUGHS,
        "a: &a [*a]",
        "[" * 10_000,
        "rules: " + "x" * 2**20,
        "a: !!python/object/apply:os.system [id]",
        "a: 1\n" * 9_000,
        "a: 1\n" * 200_000,
    ],
    ids=["a billion laughs", "a circle", "depth", "size", "a call", "mistakes", "values"],
)  # fmt: skip
def test_a_rule_file_that_is_a_bomb_is_a_mistake_within_a_moment(server: RunningServer, text: str) -> None:
    began = time.monotonic()
    answer = server.ask("POST", "/api/v1/rules/try", content=text.encode())
    assert answer.status_code in {400, 413}
    assert answer.json()["error"]
    assert time.monotonic() - began < 30
    assert server.get("/api/v1/rules").json()["rules"][0]["alert"] == "full"


# ---------------------------------------------------------------- how many


def test_beyond_so_many_requests_at_once_one_is_to_come_again_and_the_probes_are_answered(tmp_path: Path) -> None:
    half = 'POST /api/v1/silences HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{"'
    connections = Connections(1000, clock=Clock())
    with serving(settings_in(tmp_path), connections) as server, contextlib.ExitStack() as stack:
        for _ in range(REQUESTS_MAX):
            stack.enter_context(stranger(server, half))
        until_there_are(REQUESTS_MAX, connections, server)
        busy = until("the server to be full", lambda: _unless(server, 200))
        assert (busy.status_code, busy.headers["Retry-After"]) == (503, "1")
        for path in ("/healthz", "/readyz", "/metrics"):
            assert server.get(path).status_code == 200
        stack.close()
        until("the server to answer again", lambda: server.get("/api/v1/state").status_code == 200)


def _unless(server: RunningServer, status: int) -> Any:
    answer = server.get("/api/v1/nodes")
    return answer if answer.status_code != status else None


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/history?series=gpu_used_bytes&from=0&to=1e12&step=1e-9",
        "/api/v1/history?" + "series=gpu_used_bytes&" * 1000 + "from=0&to=1",
        "/api/v1/history?series=gpu_used_bytes&from=nan&to=inf",
        "/api/v1/alerts?limit=1000000000",
        "/api/v1/alerts?limit=-1",
        "/api/v1/runs/r/steps?limit=99999999",
        "/api/v1/alerts?node=" + "n" * 30_000,
        "/api/v1/alerts/%00",
        "/api/v1/nodes/%F0%28%8C%28",
        "/api/v1/nodes/..%2f..%2fetc%2fpasswd",
        "/static/..%2f..%2f..%2fetc%2fpasswd",
        "/api/v1/incidents/..%2f..%2fetc%2fpasswd",
    ],
)
def test_a_question_without_bounds_gets_a_bounded_answer(server: RunningServer, path: str) -> None:
    answer = server.get(path)
    assert answer.status_code in {200, 400, 404}
    assert len(answer.content) < 100_000
    assert "root:" not in answer.text


# ---------------------------------------------------------------- words that are meant for others


@pytest.mark.parametrize("name", EVIL_NAMES, ids=range(len(EVIL_NAMES)))
def test_a_name_is_nothing_but_a_name_wherever_it_is_shown(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with receiving() as receiver:
        rules = tmp_path / "alerts.yaml"
        rules.write_text(RULES_TO.format(url=receiver.url), encoding="utf-8")
        with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
            agent.greet(hello(name, sent_at=time.time(), run=name))
            agent.say(sample(1, 79, time.time()))
            (row,) = until("the alert", lambda: server.get("/api/v1/alerts?state=firing").json())
            assert row["labels"] == {"node": name, "gpu": "0", "run": name}
            oom = wire.DeviceOom(error=name, gpu="0")
            agent.say(
                wire.Event(seq=2, at=time.time(), body=oom, run=name, origin=wire.Origin(source=name, actor=name))
            )
            agent.hear_ack_of(2)
            families = text_string_to_metric_families(server.get("/metrics").text)
            labels = {one.labels.get("node") for family in families for one in family.samples}
            assert {label for label in labels if label} == {name}
            assert [one["node"] for one in server.get("/api/v1/nodes").json()] == [name]
            sent = receiver.wait_for(1)[0].json()
            assert sent["alerts"][0]["labels"]["node"] == name
            assert main(["alerts", "--server", server.url]) == 0
        _printed_harmlessly(capsys.readouterr().out)
    _exported_harmlessly(tmp_path, name)
    assert sorted(one.name for one in tmp_path.iterdir() if one.name.startswith("pwned")) == []


def _printed_harmlessly(said: str) -> None:
    assert all(one.isprintable() for line in said.splitlines() for one in line)


def _exported_harmlessly(folder: Path, name: str) -> None:
    """Not one cell of the tables begins as a formula does."""
    out = folder / "out"
    assert (
        main(["export", "gpus", "events", "transitions", "--db", str(folder / "oomwatch.db"), "--output", str(out)])
        == 0
    )
    cells = [
        cell
        for table in out.glob("*.csv")
        for row in csv.reader(table.read_text(encoding="utf-8").splitlines(keepends=True))
        for cell in row
    ]
    assert any(name in cell for cell in cells)
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r")) and not _is_number(cell)] == []


def _is_number(cell: str) -> bool:
    with contextlib.suppress(ValueError):
        return float(cell) is not None
    return False


def test_what_is_asked_is_answered_as_json_whatever_it_holds(server: RunningServer) -> None:
    answer = server.get("/api/v1/alerts/<script>alert(1)</script>")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert json.loads(answer.text) == msgspec.json.decode(answer.content)
