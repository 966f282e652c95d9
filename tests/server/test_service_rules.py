"""alerts.yaml changes while the server runs."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.house import hello, sample
from tests.server.receiver import Receiver, receiving
from tests.server.running_server import RULES, AgentClient, serving, settings_in, until

from oomwatch.options import SettingError
from oomwatch.ruleedit.file import Replacement
from oomwatch.rulefile import RuleFile, parse_rules
from oomwatch.service.rulewatch import RuleWatch, Stamp, stamp


class Watched:
    """A rule file that is watched, and what came of it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "alerts.yaml"
        self.path.write_text(RULES, encoding="utf-8")
        self.applied: list[RuleFile] = []
        self.reported: list[str | None] = []
        self.refuses = False
        self.failures = 0
        self.defect: Exception | None = None
        self.watch = RuleWatch(self.path, self._apply, self.reported.append, self._count, seen=stamp(self.path))

    def _count(self) -> None:
        self.failures += 1

    def _apply(self, rules: RuleFile) -> None:
        if self.defect is not None:
            raise self.defect
        if self.refuses:
            raise SettingError("notify channel ops: its variable is not set")
        self.applied.append(rules)

    def look(self, *, force: bool = False) -> None:
        asyncio.run(self.watch.check(force=force))

    def write(self, text: str) -> None:
        self.path.write_text(text, encoding="utf-8")


def test_a_file_that_is_as_it_was_is_not_read_again(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.look()
    assert watched.applied == []
    assert watched.reported == []


def test_a_file_is_read_again_where_someone_asks(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.look(force=True)
    assert len(watched.applied) == 1


def test_a_changed_file_is_applied_and_a_mistake_is_reported_and_mended(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.write("rules: 5\n")
    watched.look()
    watched.look()  # the same mistake is not told twice
    watched.write(RULES.replace("full", "crowded", 1))
    watched.look()
    assert len(watched.reported) == 2
    assert str(watched.reported[0]).endswith("alerts.yaml:1:8: rules must be a list")
    assert watched.reported[1] is None
    assert watched.applied[0].rules.rules[0].alert == "crowded"


def test_a_file_that_is_away_while_an_editor_saves_is_found_again(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.path.unlink()
    watched.look()
    watched.write(RULES)
    watched.look()
    assert "cannot be read" in str(watched.reported[0])
    assert watched.reported[-1] is None


def test_channels_that_cannot_be_opened_are_a_mistake_of_the_file(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.refuses = True
    watched.look(force=True)
    assert watched.reported == [f"{watched.path}: notify channel ops: its variable is not set"]


@pytest.mark.parametrize("defect", [TypeError("unhashable"), RecursionError("deep"), MemoryError()])
def test_a_defect_of_our_own_is_logged_counted_and_shown_and_the_file_is_watched_on(
    tmp_path: Path, defect: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched(tmp_path)
    watched.defect = defect
    watched.look(force=True)
    assert watched.failures == 1
    assert "by a defect of oomwatch" in str(watched.reported[-1])
    assert any(record.exc_info for record in caplog.records)
    watched.defect = None
    watched.write(RULES.replace("full", "crowded", 1))
    watched.look()
    assert watched.reported[-1] is None
    assert len(watched.applied) == 1


# ---------------------------------------------------------------- in a running server


@pytest.mark.parametrize("odd", ["rules:\n  - [a]: b\n", "? [a, b]\n: c\n", "rules: " + "[" * 5000])
def test_odd_yaml_is_a_mistake_and_the_next_good_file_is_in_force(tmp_path: Path, odd: str) -> None:
    with serving(settings_in(tmp_path)) as server:
        (tmp_path / "alerts.yaml").write_text(odd, encoding="utf-8")
        until("the mistake to be told", lambda: "rules_error" in server.get("/api/v1/rules").json()["server"])
        assert server.get("/readyz").json()["problems"] == []
        (tmp_path / "alerts.yaml").write_text(RULES.replace("full", "crowded", 1), encoding="utf-8")
        until("the rules to change", lambda: server.get("/api/v1/rules").json()["rules"][0]["alert"] == "crowded")
        assert "oomwatch_failures_total 0.0" in server.get("/metrics").text


def notifying(receiver: Receiver) -> str:
    channel = f"{{kind: webhook, name: ops, url: '{receiver.url}'}}"
    return f"notify:\n  group_wait: 0s\n  channels:\n    - {channel}\n{RULES}"


def test_other_channels_are_told_from_then_on(tmp_path: Path) -> None:
    with receiving() as first, receiving() as second:
        (tmp_path / "alerts.yaml").write_text(notifying(first), encoding="utf-8")
        with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
            agent.greet(hello(sent_at=time.time(), gpus=2))
            agent.say(sample(1, 79, time.time()))
            first.wait_for(1)
            (tmp_path / "alerts.yaml").write_text(notifying(second) + "\n", encoding="utf-8")
            until("the channels to change", lambda: _address_of(server.parts.herald) == second.url)
            with AgentClient(server) as other:
                other.greet(hello("gpu-08", sent_at=time.time()))
                other.say(sample(1, 79, time.time()))
                (told,) = second.wait_for(1)
            assert told.json()["alerts"][0]["labels"]["node"] == "gpu-08"
        assert len(first.received) == 1


def _address_of(herald: object) -> str:
    means = getattr(herald, "_means")  # noqa: B009 - what is in force is nobody's business but this test's
    return str(means.config.channels[0].url.reveal())


def test_hangup_is_heard_by_a_server_in_its_main_thread(tmp_path: Path) -> None:
    watched = Watched(tmp_path)

    async def story() -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, watched.watch.reload_soon)
        watching = asyncio.create_task(watched.watch.run())
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGHUP)
        for _ in range(1000):
            if watched.applied:
                break
            await asyncio.sleep(0.01)
        watching.cancel()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)

    asyncio.run(story())
    assert len(watched.applied) == 1


# ---------------------------------------------------------------- rules that a program puts in force


def take(watched: Watched, text: str, write: Callable[[], Stamp]) -> None:
    asyncio.run(watched.watch.take(parse_rules(text), write))


def names(watched: Watched) -> list[str]:
    return [file.rules.rules[0].alert for file in watched.applied]


def test_what_a_program_writes_is_in_force_and_not_read_a_second_time(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    text = RULES.replace("alert: full", "alert: fuller")
    take(watched, text, Replacement(watched.path, text, instead_of=RULES).take)
    watched.look()
    assert names(watched) == ["fuller"]
    assert watched.reported == [None]
    watched.write(RULES)
    watched.look()
    assert names(watched) == ["fuller", "full"]


def test_where_the_file_cannot_be_written_the_rules_of_before_come_back(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.look(force=True)

    def fail() -> Stamp:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="disk is full"):
        take(watched, RULES.replace("alert: full", "alert: fuller"), fail)
    assert names(watched) == ["full", "fuller", "full"]
    assert watched.reported == [None]


def test_rules_that_cannot_be_used_are_not_written(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.refuses = True
    written: list[bool] = []
    with pytest.raises(SettingError):
        take(watched, RULES, lambda: written.append(True))
    assert written == []


def test_a_file_that_is_being_read_does_not_come_over_what_a_program_takes_meanwhile(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    edited, taken = (RULES.replace("alert: full", f"alert: {name}") for name in ("edited", "taken"))
    watched.write(edited)

    async def story() -> None:
        reading = asyncio.create_task(watched.watch.check())
        await asyncio.sleep(0)  # it has asked for the file, in a thread, and waits
        await watched.watch.take(parse_rules(taken), Replacement(watched.path, taken, instead_of=edited).take)
        await reading

    asyncio.run(story())
    assert names(watched) == ["edited", "taken"]
    assert "alert: taken" in watched.path.read_text(encoding="utf-8")
