"""Patterns that people write: what they give, what is wrong with them, and that none can hang the agent."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch.options import SettingError
from oomwatch_agent.logsource import LogSource
from oomwatch_agent.own_patterns import OwnPattern, OwnPatterns, mistake_in
from oomwatch_agent.settings import load

GIB = 1024**3
MEMORY = OwnPattern(
    name="mem", contains="mem[after]", match=r"mem\[after\] step (?P<step>\d+) reserved (?P<reserved_gib>[\d.]+)"
)
TIMES = OwnPattern(
    name="times", contains="rollout took", match=r"(?P<step>\d+): rollout took (?P<rollout_seconds>[\d.]+)"
)
SWITCH = OwnPattern(name="switch", contains="weights moved", match=r"weights moved(?P<reshard>)")
HANGS = OwnPattern(name="hangs", contains="aaaa", match=r"(?P<reserved_gib>(a+)+)$")


@pytest.fixture
def own() -> Iterator[OwnPatterns]:
    """All of the above, with the real helper process."""
    patterns = OwnPatterns((MEMORY, TIMES, SWITCH, HANGS))
    yield patterns
    patterns.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mem[after] step 3 reserved 61.5", [wire.TorchMemory(step=3, reserved_bytes=round(61.5 * GIB))]),
        ("12: rollout took 31.5", [wire.Step(step=12, rollout_seconds=31.5, phase_seconds={"rollout": 31.5})]),
        ("the weights moved again", [wire.Reshard(marker="resharding_parameters")]),
        ("mem[after] step x", []),
        ("nothing of the kind", []),
    ],
)
def test_named_groups_become_events(own: OwnPatterns, text: str, expected: list[wire.EventBody]) -> None:
    assert list(own.bodies_of(text, text)) == expected


def test_an_expression_that_hangs_is_switched_off_and_the_others_go_on(own: OwnPatterns) -> None:
    begun = time.monotonic()
    assert own.bodies_of("a" * 60 + "!", "a" * 60 + "!") == ()
    assert time.monotonic() - begun < 15  # a tenth of a second, and the time to start a Python on a busy machine
    (problem,) = own.problems
    assert problem.startswith('the pattern "hangs" is switched off: it took longer than 100 ms')
    assert own.bodies_of("a" * 60 + "!", "a" * 60 + "!") == ()
    assert len(own.bodies_of("weights moved", "weights moved")) == 1


class DeadHelper:
    """Ends as soon as it is asked."""

    def search(self, index: int, text: str) -> dict[str, str]:
        raise OSError(f"it ended at {index}, {len(text)}")

    def close(self) -> None:
        pass


def test_a_helper_that_dies_switches_the_pattern_off() -> None:
    own = OwnPatterns((SWITCH,), make_helper=lambda _: DeadHelper())
    assert own.bodies_of("weights moved", "weights moved") == ()
    assert own.problems == ('the pattern "switch" is switched off: its helper process failed (it ended at 0, 13)',)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"match": "(?P<reserved_gib>"}, '"match" is no regular expression: '),
        ({"match": r"(?P<reserved_gb>\d+)"}, 'nothing is known by the group "reserved_gb"; known are step, reshard'),
        ({"match": r"\d+"}, '"match" names no group'),
        ({"match": r"(?P<rollout_seconds>\d+)"}, "also needs a group (?P<step>"),
        ({"match": r"(?P<step>\d+)"}, 'has only the group "step"'),
        ({"contains": "x"}, '"contains" must be at least 3 printable characters'),
        ({"match": "(?P<reserved_gib>1)" + "x" * 2000}, '"match" is longer than 2000 characters'),
    ],
)
def test_a_mistake_is_named_in_a_sentence(change: dict[str, str], sentence: str) -> None:
    fields = {"name": "mine", "contains": "mem[after]", "match": r"(?P<reserved_gib>\d+)", **change}
    told = mistake_in([OwnPattern(**fields)])
    assert told is not None
    assert told.startswith('pattern "mine": ')
    assert sentence in told


def test_two_of_one_name_are_a_mistake() -> None:
    assert mistake_in([MEMORY, MEMORY]) == 'two patterns are named "mem"; give each its own name'


SETTINGS = """
patterns:
  - name: mem
    contains: "mem[after]"
    match: 'mem\\[after\\] step (?P<step>\\d+) reserved (?P<reserved_gib>[\\d.]+)'
"""


def test_patterns_stand_in_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(SETTINGS, encoding="utf-8")
    assert load(["--config", str(tmp_path / "agent.yaml")], {}).settings.patterns == (MEMORY,)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("reserved_gib", 'pattern "mem": nothing is known by the group "reserved_gibs"'),
        ("contains:", "containss"),
    ],
)
def test_a_mistake_in_the_settings_file_names_the_file(tmp_path: Path, wrong: str, sentence: str) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(SETTINGS.replace(wrong, wrong.rstrip(":") + "s" + (":" if wrong[-1] == ":" else "")), "utf-8")
    with pytest.raises(SettingError) as caught:
        load(["--config", str(path)], {})
    assert str(path) in str(caught.value)
    assert sentence in str(caught.value)


def test_lines_of_a_followed_log_give_them(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("(Trainer pid=7) mem[after] step 3 reserved 61.5\nother\n", encoding="utf-8")
    source = LogSource(str(log), "start", None, own=OwnPatterns((MEMORY,)))
    source.open()
    (found,) = source.read(slow=True).found
    assert found.body == wire.TorchMemory(step=3, reserved_bytes=round(61.5 * GIB))
    assert found.origin.pid == 7
    source.close()
