"""Time in a backtest passes as it does live, though much of it is skipped."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.backtest.inputs import FIXTURES, GIB, RULES, leak_csv, sources, with_capacity, write

from oomwatch import wire
from oomwatch.backtest.drive import drive
from oomwatch.core.engine import Engine
from oomwatch.core.rule import RuleSet
from oomwatch.rulefile import read_rules
from oomwatch.trace import Line, replay

SHIPPED = read_rules(Path(__file__).resolve().parents[2] / "alerts.yaml").rules


def _second_by_second(lines: Iterator[Line]) -> Iterator[Line]:
    """The same lines with time told each second, as a live server does."""
    now: float | None = None
    for line in lines:
        if line.advance is not None and now is not None:
            while now + 1 < line.advance:
                now += 1
                yield Line(advance=now)
        yield line
        now = line.advance if line.advance is not None else line.now if line.now is not None else now


def _packed_csv(path: Path) -> Path:
    """Up and down over the bound for hours, with a gap, so that alerts fire, end and fire again."""
    lines = ["series,t_seconds,used_bytes"]
    for row in range(400):
        gap = 7000 if row > 300 else 0
        lines.append(f"pod,{57 * row + gap},{int((38 + 8 * ((row // 25) % 2) + row % 3) * GIB)}")
    return write(path, lines)


@pytest.mark.parametrize("rules", [RULES, SHIPPED], ids=["small", "shipped"])
@pytest.mark.parametrize("kind", ["packed", "leak", "log"])
def test_time_that_is_skipped_changes_nothing(tmp_path: Path, kind: str, rules: RuleSet) -> None:
    paths = {
        "packed": lambda: _packed_csv(tmp_path / "packed.csv"),
        "leak": lambda: leak_csv(tmp_path / "leak.csv"),
        "log": lambda: FIXTURES / "verl-0.9.1-leak" / "driver.log",
    }
    source = sources(paths[kind](), known=with_capacity(80 if kind == "log" else 48))[0]
    quick = drive(source.lines(), rules, live=False).transitions
    thorough = list(replay(_second_by_second(source.lines()), rules))
    assert quick == thorough
    assert quick


def test_an_idle_engine_that_no_rule_asks_for_the_time_still_keeps_it() -> None:
    """After an hour of nothing, what is full is judged from then on, and no second earlier or later."""
    rules = RuleSet(rules=tuple(rule for rule in RULES.rules if rule.alert == "full"))
    engine = Engine(rules)
    facts = wire.NodeFacts(gpus=(wire.GpuFacts(gpu="0", uuid="u", name="H100", total_bytes=80 * GIB),))
    hello = wire.Hello(
        protocol=1, agent_version="0", node="n", session="s", sent_at=0.0, interval_seconds=3600, facts=facts
    )
    engine.observe(hello, "n", 0.0)
    assert engine.advance(3600.5) == []
    engine.observe(wire.Sample(seq=1, at=3600.5, gpus=(wire.GpuSample(gpu="0", used_bytes=79 * GIB),)), "n", 3600.5)
    assert [one.at for one in engine.advance(3700.0)] == [3661.0]


def test_a_converted_run_is_no_silence_when_it_is_replayed_either(tmp_path: Path) -> None:
    source = sources(leak_csv(tmp_path / "leak.csv"), known=with_capacity(48))[0]
    assert {one.alert for one in replay(source.lines(), RULES)} == {"full", "gone"}
