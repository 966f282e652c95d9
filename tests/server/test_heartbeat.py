"""The dead man's switch calls while all is well, and is quiet when it is not."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.house import FULL_AT_ONCE, Broken, hello, sample
from tests.server.receiver import Answer, Receiver, receiving
from tests.server.running_server import RULES, AgentClient, RunningServer, serving, settings_in, until

from oomwatch.core.rule import Rule, RuleSet
from oomwatch.notify import http
from oomwatch.notify.heartbeat import LASTING_LOOKS, Callee, Heartbeat, HeartbeatSection
from oomwatch.notify.secret import Secret
from oomwatch.options import SettingError
from oomwatch.rulefile import RuleFileError, parse_rules
from oomwatch.tasks import end

LOOK_SECONDS = 0.005
ENOUGH_SECONDS = 10.0


class Switch:
    """A heartbeat on its own, whose server is as well as the test says."""

    def __init__(self, receiver: Receiver, *, interval_seconds: float = 0.05, fails: bool = True) -> None:
        self.receiver = receiver
        self.problems: list[str] = []
        self.looks = self.enough_at = 0
        self.looked_enough = asyncio.Event()
        failing = Secret(f"{receiver.url}/ping/fail") if fails else None
        self.target = Callee("GET", Secret(f"{receiver.url}/ping"), failing, interval_seconds)

    def look(self) -> list[str]:
        self.looks += 1
        if self.looks >= self.enough_at:
            self.looked_enough.set()
        return self.problems

    def run(self, story: Callable[["Switch"], Awaitable[None]]) -> None:
        asyncio.run(self._run(story))

    async def _run(self, story: Callable[["Switch"], Awaitable[None]]) -> None:
        async with http.client() as client:
            self.heartbeat = Heartbeat(client, look_seconds=LOOK_SECONDS, clock=lambda: 1234.0, chance=lambda: 0.999)
            self.heartbeat.replace(self.target)
            task = asyncio.create_task(self.heartbeat.run(self.look))
            try:
                await asyncio.wait_for(story(self), ENOUGH_SECONDS)
            finally:
                await end([task])

    async def heard(self, count: int) -> list[str]:
        """The paths of the calls so far, once there are so many."""
        while len(self.receiver.received) < count:  # noqa: ASYNC110 - the receiver is in another thread
            await asyncio.sleep(LOOK_SECONDS)
        return [one.path for one in self.receiver.received]

    async def arrived(self) -> None:
        """A call has been answered."""
        while self.heartbeat.last_success_at is None:
            await self.looked(1)

    async def looked(self, times: int) -> None:
        self.enough_at = self.looks + times
        self.looked_enough.clear()
        await self.looked_enough.wait()


def test_it_calls_once_an_interval() -> None:
    async def story(switch: Switch) -> None:
        assert await switch.heard(3) == ["/ping"] * 3
        first, _, third = switch.receiver.received[:3]
        assert third.at - first.at >= 0.4  # the first one has to connect
        assert first.method == "GET"
        await switch.arrived()
        assert switch.heartbeat.last_success_at == 1234.0

    with receiving() as receiver:
        Switch(receiver, interval_seconds=0.3).run(story)


def test_it_is_quiet_at_the_first_sign_and_tells_of_a_failure_that_lasts_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(switch: Switch) -> None:
        await switch.heard(1)
        switch.problems = ["the rules were last judged 11 s ago"]
        await switch.looked(LASTING_LOOKS + 20)
        assert (await switch.heard(2))[-1] == "/ping/fail"
        calls = len(switch.receiver.received)
        await switch.looked(20)  # two intervals
        assert len(switch.receiver.received) == calls
        switch.problems = []
        assert (await switch.heard(calls + 1))[-1] == "/ping"

    with receiving() as receiver:
        Switch(receiver).run(story)
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "the heartbeat stops, for an alert might not be told: the rules were last judged 11 s ago",
        "all is well again: the heartbeat goes on",
    ]


def test_a_moments_failure_is_reported_to_nobody() -> None:
    async def story(switch: Switch) -> None:
        await switch.heard(1)
        switch.problems = ["the machine has just woken up"]
        await switch.looked(LASTING_LOOKS - 1)
        switch.problems = []
        await switch.heard(3)
        assert {one.path for one in switch.receiver.received} == {"/ping"}

    with receiving() as receiver:
        Switch(receiver).run(story)


def test_a_failure_is_told_to_no_service_that_does_not_want_it() -> None:
    async def story(switch: Switch) -> None:
        await switch.heard(1)
        switch.problems = ["broken"]
        await switch.looked(20)
        assert {one.path for one in switch.receiver.received} == {"/ping"}

    with receiving() as receiver:
        Switch(receiver, fails=False).run(story)


def test_a_service_that_is_down_is_called_again_within_the_interval_and_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(switch: Switch) -> None:
        await switch.arrived()
        assert len(switch.receiver.received) == 2

    with receiving() as receiver:
        receiver.answer(Answer(503))
        Switch(receiver, interval_seconds=300.0).run(story)
        said = [record.getMessage() for record in caplog.records]
        assert said == [
            f"notify heartbeat: {receiver.url} answered 503: ok; it is tried on",
            "notify heartbeat: calls arrive again",
        ]
        assert "ping" not in caplog.text  # the address is a secret


def test_an_address_that_is_wrong_is_tried_once_an_interval() -> None:
    async def story(switch: Switch) -> None:
        await switch.heard(1)
        await switch.looked(20)
        assert len(switch.receiver.received) == 1
        assert switch.heartbeat.last_success_at is None

    with receiving() as receiver:
        receiver.always(Answer(404))
        Switch(receiver, interval_seconds=300.0).run(story)


# ---------------------------------------------------------------- the section of alerts.yaml


def section(text: str) -> HeartbeatSection:
    found = parse_rules(f"rules: []\nnotify:\n  heartbeat: {text}\n").notify.heartbeat
    assert found is not None
    return found


def test_the_section_is_read_as_written() -> None:
    found = section("{url_env: BEAT, interval: 30s, method: POST, fail_suffix: /fail}")
    target = found.open({"BEAT": "https://beats.example/uuid/?create=1"})
    assert target == Callee(
        "POST", Secret("https://beats.example/uuid/?create=1"), Secret("https://beats.example/uuid/fail?create=1"), 30.0
    )
    assert section("{url: 'http://a/b'}").open({}) == Callee("GET", Secret("http://a/b"), None, 60.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "exactly one of url, url_env"),
        ("{url: 'http://a', url_file: b}", "exactly one of url, url_env"),
        ("{url: 'http://a', interval: 100ms}", "an interval of less than 1 s"),
        ("{url: 'http://a', interval: soon}", "no duration"),
        ("{url: 'http://a', method: PUT}", "PUT"),
        ("{url: 'http://a', fail_suffix: fail}", 'write for example "/fail"'),
        ("{url: 'http://a', fail_suffix: '/f?a=1'}", 'write for example "/fail"'),
        ("{url: 'http://a', every: 1m}", "every"),
        ("5", "expected a mapping"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(RuleFileError, match=rf"^alerts.yaml:3:\d+: .*{re.escape(message)}"):
        section(text)


@pytest.mark.parametrize("text", ["{url: 'gopher://secret'}", "{url_env: NOT_SET}", "{url_file: /nowhere/at/all}"])
def test_an_address_that_cannot_be_used_is_named_and_not_shown(text: str) -> None:
    with pytest.raises(SettingError, match=r"^notify heartbeat: ") as caught:
        section(text).open({})
    assert "gopher" not in str(caught.value)


# ---------------------------------------------------------------- in a running server


def with_heartbeat(folder: Path, receiver: Receiver, path: str = "/uuid") -> Any:
    (folder / "alerts.yaml").write_text(
        f"notify:\n  heartbeat: {{url: '{receiver.url}{path}', interval: 1s, fail_suffix: /fail}}\n{RULES}",
        encoding="utf-8",
    )
    return settings_in(folder)


def paths(receiver: Receiver) -> list[str]:
    return [one.path for one in receiver.received]


def break_a_rule(server: RunningServer) -> None:
    broken = Rule(alert="broken", severity="info", when=(Broken(),))  # type: ignore[arg-type]
    server.call(lambda: server.parts.service.replace_rules(RuleSet(rules=(*FULL_AT_ONCE.rules, broken))))
    with AgentClient(server) as agent:
        agent.greet(hello())
        agent.say(sample(1, 10))


@pytest.mark.parametrize(
    "fail",
    [
        lambda server: server.end_task("beat"),
        lambda server: server.end_task("journal"),
        break_a_rule,
    ],
    ids=["the loop ends", "the journal ends", "a rule fails"],
)
def test_a_server_that_fails_tells_so_and_is_heard_no_more(
    tmp_path: Path, fail: Callable[[RunningServer], None]
) -> None:
    with receiving() as receiver, serving(with_heartbeat(tmp_path, receiver)) as server:
        receiver.wait_for(1)
        shown = until("the metric", lambda: re.findall("\noomwatch_heartbeat_.* (.*)", server.get("/metrics").text))
        assert float(shown[0]) > 1e9
        fail(server)
        until("the failure to be reported", lambda: "/uuid/fail" in paths(receiver))
        assert paths(receiver)[-1] == "/uuid/fail"
        assert "heartbeat" not in server.parts.dead_tasks


def test_another_service_is_called_once_the_file_says_so(tmp_path: Path) -> None:
    with receiving() as receiver, serving(with_heartbeat(tmp_path, receiver)):
        receiver.wait_for(1)
        with_heartbeat(tmp_path, receiver, "/another-one")
        until("the other to be called", lambda: paths(receiver)[-1] == "/another-one")


def test_a_service_that_cannot_be_named_leaves_all_as_it_was(tmp_path: Path) -> None:
    with receiving() as receiver, serving(with_heartbeat(tmp_path, receiver)) as server:
        receiver.wait_for(1)
        (tmp_path / "alerts.yaml").write_text(
            f"notify:\n  heartbeat: {{url_env: NOT_SET_ANYWHERE}}\n{RULES.replace('full', 'crowded', 1)}",
            encoding="utf-8",
        )
        said = until("the mistake to be told", lambda: server.get("/api/v1/rules").json()["server"].get("rules_error"))
        assert "notify heartbeat: the environment variable NOT_SET_ANYWHERE is not set" in said
        assert server.get("/api/v1/rules").json()["rules"][0]["alert"] == "full"
        calls = len(receiver.received)
        receiver.wait_for(calls + 1)
