"""The curve that goes with an alert is of its GPU or host, with the limit of the rule that watches that very figure."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.notify_samples import START, transition

from oomwatch import wire
from oomwatch.core.rule import Rule
from oomwatch.notify.channel import Curve
from oomwatch.rulefile import read_rules
from oomwatch.store.store import Batch, Entry, Store
from oomwatch.web.curves import SPAN_SECONDS, Asked, Curves, asked_of

RULES = read_rules(Path(__file__).resolve().parents[2] / "alerts.yaml").rules
GPU = {"node": "gpu-07", "gpu": "3"}
NOW = START + SPAN_SECONDS


def rule_of(one: wire.Transition) -> Rule | None:
    return RULES.of(one)


@pytest.mark.parametrize(
    ("one", "asked"),
    [
        (transition(3), Asked("gpu_used_ratio", GPU, 0.85)),
        (transition(3, alert="memory_forecast", limit=1800.0), Asked("gpu_used_ratio", GPU, None)),
        (transition(3, alert="a_rule_that_is_gone"), Asked("gpu_used_ratio", GPU, None)),
        (
            transition(None, alert="host_memory_high", limit=0.5, facts={"limited_by": "machine", "limit_bytes": 1000}),
            Asked("host_memory_used_bytes", {"node": "gpu-07"}, 500.0),
        ),
        (
            transition(None, alert="host_memory_forecast", facts={"limited_by": "container", "limit_bytes": 1000}),
            Asked("host_cgroup_used_bytes", {"node": "gpu-07"}, 1000.0),
        ),
        (
            transition(None, alert="disk_forecast", facts={"limit_bytes": 1000}),
            Asked("host_memory_used_bytes", {"node": "gpu-07"}, None),
        ),
        (transition(None, node=None), None),
    ],
)
def test_what_is_drawn_is_the_memory_of_the_alerts_subject(one: wire.Transition, asked: Asked | None) -> None:
    assert asked_of(one, rule_of(one)) == asked


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    gpus = (wire.GpuFacts(gpu="3", uuid="u", name="H100", total_bytes=100 * 2**20, reserved_bytes=0),)
    hello = wire.Hello(
        protocol=1, agent_version="1", node="gpu-07", session="s", sent_at=START, interval_seconds=1.0,
        facts=wire.NodeFacts(gpus=gpus),
    )  # fmt: skip
    samples = [
        wire.Sample(seq=n + 1, at=START + n, gpus=(wire.GpuSample(gpu="3", used_bytes=n * 2**20),)) for n in range(90)
    ]
    messages: list[wire.AgentMessage] = [hello, *samples]
    entries = (Entry(node="gpu-07", session="s", received_at=START, message=one) for one in messages)
    opened.record(Batch(entries=tuple(entries)))
    yield opened
    opened.close()


def curve(store: Store, one: wire.Transition) -> Curve | None:
    async def read(fn: Callable[..., Any], *args: object) -> Any:
        return fn(*args)

    return asyncio.run(Curves(store, read, rule_of).of(one, NOW))


def test_a_curve_holds_the_last_quarter_of_an_hour(store: Store) -> None:
    found = curve(store, transition(3))
    assert found is not None
    assert (found.unit, found.limit) == ("ratio", 0.85)
    assert len(found.times) == len(found.values)
    assert found.times[0] >= START - 2
    assert max(value for value in found.values if value is not None) == pytest.approx(0.89)


def test_a_history_that_cannot_be_read_is_no_curve(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    async def read(*_args: object) -> Any:
        raise OSError("the disk is gone")

    assert asyncio.run(Curves(store, read, rule_of).of(transition(3), NOW)) is None
    assert "cannot read the curve" in caplog.text
