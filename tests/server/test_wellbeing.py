"""A server that is half dead says so: each part of it fails for real, in a server that runs."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server.house import FULL_AT_ONCE, Broken, hello, sample
from tests.server.receiver import receiving
from tests.server.running_server import RULES, AgentClient, RunningServer, serving, settings_in, until

from oomwatch.core.rule import Rule, RuleSet
from oomwatch.web.threads import Threads, WatchedPool
from oomwatch.web.wellbeing import READERS_STUCK_SECONDS, WRITER_STUCK_SECONDS, ailing, silencing, unready


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with serving(settings_in(tmp_path)) as running:
        until("the journal to begin", lambda: running.parts.journal.is_running)
        yield running


def readiness(server: RunningServer) -> tuple[int, list[str]]:
    answer = server.get("/readyz")
    return answer.status_code, answer.json()["problems"]


def test_a_server_that_works_has_no_problem(server: RunningServer) -> None:
    assert readiness(server) == (200, [])


@pytest.mark.parametrize("name", ["beat", "journal", "rule watch", "upkeep", "incidents"])
def test_a_task_that_ends_in_any_way_makes_the_server_unready(server: RunningServer, name: str) -> None:
    server.end_task(name)
    until("the end to be noticed", lambda: server.parts.dead_tasks)
    status, problems = readiness(server)
    assert status == 503
    assert f"the task {name} has ended by a defect; see the log, and restart the server" in problems
    assert problems == server.call(lambda: silencing(server.parts))


def test_a_courier_that_ends_is_named(tmp_path: Path) -> None:
    with receiving() as receiver:
        (tmp_path / "alerts.yaml").write_text(
            f"notify:\n  channels:\n    - {{kind: webhook, name: ops, url: '{receiver.url}'}}\n{RULES}",
            encoding="utf-8",
        )
        with serving(settings_in(tmp_path)) as server:
            server.end_task("notify ops")
            until("the end to be noticed", lambda: server.call(lambda: ailing(server.parts)))
            status, problems = readiness(server)
            assert status == 503
            assert problems == ["nothing is sent to the channel ops any more, by a defect; restart the server"]


def test_a_loop_that_stood_still_is_noticed_as_soon_as_it_moves(server: RunningServer) -> None:
    released = threading.Event()
    server.loop.call_soon_threadsafe(released.wait)
    asked = asyncio.run_coroutine_threadsafe(_problems(lambda: silencing(server.parts)), server.loop)
    assert not asked.done()  # nobody is told anything: neither a probe nor a heartbeat
    released.set()
    assert asked.result(5) == []


async def _problems(look: Callable[[], list[str]]) -> list[str]:
    return look()


@pytest.mark.parametrize(
    ("limit_seconds", "with_pool", "said"),
    [
        (WRITER_STUCK_SECONDS, lambda threads, pool: threads._replace(writer=pool), "ended a write for 21 s"),
        (READERS_STUCK_SECONDS, lambda threads, pool: threads._replace(readers=pool), "answered a question for 61 s"),
    ],
)
def test_a_call_of_the_database_that_never_returns_is_noticed(
    server: RunningServer, limit_seconds: float, with_pool: Callable[[Threads, WatchedPool], Threads], said: str
) -> None:
    now, released = [0.0], threading.Event()
    with WatchedPool(1, "hangs", clock=lambda: now[0]) as hanging:
        parts = server.parts._replace(threads=with_pool(server.parts.threads, hanging))
        hanging.submit(released.wait)
        try:
            now[0] = limit_seconds
            assert server.call(lambda: silencing(parts)) == []
            now[0] += 1
            expected = [f"the database has not {said}; does its disk or its server hang?"]
            assert server.call(lambda: (ailing(parts), silencing(parts), unready(parts))) == (expected,) * 3
        finally:
            released.set()
    assert hanging.owed_seconds() == 0


def test_the_writer_owes_an_answer_while_the_database_hangs(server: RunningServer) -> None:
    released = threading.Event()
    server.parts.threads.writer.submit(released.wait)
    try:
        until("the wait to be counted", lambda: server.parts.threads.writer.owed_seconds() > 0)
        assert readiness(server)[0] == 200  # a moment is no hang
    finally:
        released.set()
    until("the writer to be free", lambda: server.parts.threads.writer.owed_seconds() == 0)


def test_a_disk_that_hangs_makes_readiness_fail_and_does_not_hold_the_loop(server: RunningServer) -> None:
    released = threading.Event()
    for _ in range(2):
        server.parts.threads.readers.submit(released.wait)
    try:
        assert readiness(server) == (
            503,
            ["the database's file could not be looked at within 2 s; does its disk hang?"],
        )
        assert server.call(lambda: silencing(server.parts)) == []
    finally:
        released.set()


def test_a_rule_that_fails_stops_the_dead_mans_switch_and_keeps_the_server_ready(server: RunningServer) -> None:
    """Were it unready, no agent would be let in, and every other rule would be blind."""
    broken = Rule(alert="broken", severity="info", when=(Broken(),))  # type: ignore[arg-type]
    server.call(lambda: server.parts.service.replace_rules(RuleSet(rules=(*FULL_AT_ONCE.rules, broken))))
    with AgentClient(server) as agent:
        agent.greet(hello())
        agent.say(sample(1, 10))
        said = "the rule broken/info fails by a defect of oomwatch; see the log"
        until("the rule to fail", lambda: said in readiness(server)[1])
        assert readiness(server)[0] == 200
        assert said in server.call(lambda: silencing(server.parts))
        assert server.call(lambda: ailing(server.parts)) == []  # another start would not help
    server.call(lambda: server.parts.service.replace_rules(FULL_AT_ONCE))
    assert readiness(server) == (200, [])


def test_a_database_that_cannot_be_written_silences_nobody(server: RunningServer) -> None:
    server.call(lambda: setattr(server.parts.journal, "problem", "database: the disk is full"))
    assert readiness(server) == (503, ["database: the disk is full"])
    assert server.call(lambda: silencing(server.parts)) == []
