"""What the shipped rules say to each scenario, by the whole way from the simulated source to the engine."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch.core.engine import Engine
from oomwatch.rulefile import read_rules
from oomwatch.wording import put_into_words
from oomwatch_agent.sampler import Sampler
from oomwatch_agent.simulated import SimulatedSource

RULES = read_rules(Path(__file__).resolve().parents[2] / "alerts.yaml").rules
NOW = 1_790_000_000.0

# Scenario -> alert -> when it fires first, in seconds since the start; what is not listed does not fire in ten minutes.
FIRED: dict[str, dict[str, int]] = {
    "healthy": {},
    "leak": {"plan_exceeded": 135, "memory_forecast": 183, "gpu_memory_high": 212, "out_of_memory": 304},
    "sleep-residue": {"sleep_residue_grows": 97, "plan_exceeded": 134, "out_of_memory": 135, "gpu_memory_high": 405},
    "slow-rollout": {"rollout_time_jump": 183},
    "length-growth": {"memory_forecast": 366},
    "oom": {"out_of_memory": 104},
    "host-leak": {"host_memory_high": 405, "host_memory_forecast": 423, "out_of_memory": 448},
    "reshard-storm": {"reshard_storm": 120},
    "demo": {
        "plan_exceeded": 62,
        "memory_forecast": 84,
        "sleep_residue_grows": 100,
        "gpu_memory_high": 133,
        "out_of_memory": 162,
    },
}


def _transitions(scenario: str, seconds: int, *, gpus: int = 2) -> Iterator[tuple[int, wire.Transition]]:
    clock = [0.0]
    source = SimulatedSource(scenario, gpus=gpus, seed=1, clock=lambda: clock[0])
    sampler = Sampler([source], clock=lambda: clock[0], answer_within_seconds=5.0)
    engine = Engine(RULES)
    try:
        for second in range(seconds):
            clock[0], now = float(second), NOW + second
            collected = sampler.collect(now, slow=second % 10 == 0)
            messages: list[wire.AgentMessage] = [*collected.events, collected.sample]
            if second == 0:
                messages.insert(0, _hello(sampler.facts, now))
            for message in messages:
                yield from ((second, one) for one in engine.observe(message, "demo", now))
            yield from ((second, one) for one in engine.advance(now))
    finally:
        sampler.close()


def _hello(facts: wire.NodeFacts, now: float) -> wire.Hello:
    return wire.Hello(
        protocol=wire.PROTOCOL_VERSION,
        agent_version="1",
        node="demo",
        session="s1",
        sent_at=now,
        interval_seconds=1.0,
        facts=facts,
        simulated=True,
    )


@pytest.mark.parametrize("scenario", FIRED)
def test_in_ten_minutes_a_scenario_raises_its_own_alerts_and_no_other(scenario: str) -> None:
    fired: dict[str, int] = {}
    for second, one in _transitions(scenario, 600):
        if one.state == "firing":
            fired.setdefault(one.alert, second)
    assert fired == {alert: pytest.approx(second, abs=3) for alert, second in FIRED[scenario].items()}


def test_growing_responses_end_in_warnings_of_a_full_card_of_what_torch_keeps_and_of_slow_engines() -> None:
    fired = {one.alert for _, one in _transitions("length-growth", 900) if one.state == "firing"}
    device = {"memory_forecast", "allocator_retries", "gpu_memory_high", "torch_reserved_high"}
    assert fired == device | {"kv_cache_pressure"}


def test_the_demo_warns_of_the_crowded_run_alone_and_within_a_minute_and_a_half() -> None:
    fired = [(second, one) for second, one in _transitions("demo", 90) if one.state == "firing"]
    assert fired
    assert {one.labels["run"] for _, one in fired} == {"demo-leak"}


def test_on_each_of_its_gpus_the_demo_foretells_the_end_six_steps_ahead_and_names_the_engine_that_keeps_memory() -> (
    None
):
    fired = [one for _, one in _transitions("demo", 90, gpus=8) if one.alert == "memory_forecast" and one.causes]
    assert {one.labels["gpu"] for one in fired} == {"4", "5", "6", "7"}
    assert {one.causes[0].cause for one in fired} == {"sleep_residue"}
    assert min(int(one.facts["eta_steps"]) for one in fired) >= 6


def test_the_readme_shows_the_demos_warning_as_it_is() -> None:
    """Its words exactly; of its figures only the times, since every better estimate moves the others."""
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    shown = " ".join(readme.split())
    second, fired = next(
        (second, one)
        for second, one in _transitions("demo", 90, gpus=8)
        if one.alert == "memory_forecast" and one.labels["gpu"] == "4"
    )
    told = put_into_words(fired, RULES, simulated=True)
    text, cause = told.texts["en"], told.causes[0]
    oom = FIRED["demo"]["out_of_memory"]
    assert f"This one comes {second} seconds after the start of the demo below, and {oom - second} before" in shown
    for said in (text.summary, text.description.split(". With")[0], cause.texts["en"], cause.evidence[0].texts["en"]):
        assert _without_figures(said) in _without_figures(shown)


def _without_figures(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "N", text)


def test_each_life_of_the_demo_has_its_own_forecasts_and_its_own_failure_and_they_end_with_it() -> None:
    """It dies every 160 s, and is up again 15 s later; a step takes 11 s."""
    failed: list[tuple[int, str]] = []
    open_since: dict[str, tuple[int, str]] = {}
    for second, one in _transitions("demo", 520):
        if one.change == "state" and one.state == "firing":
            open_since[one.id] = (second, one.alert)
            failed += [(second, one.id)] if one.alert == "out_of_memory" else []
        elif one.change == "state":
            open_since.pop(one.id, None)
        foretold = [at for at, alert in open_since.values() if alert in ("memory_forecast", "sleep_residue_grows")]
        died = [at for at, _ in failed if at + 4 <= second]
        assert not [at for at in foretold if died and at < died[-1]], f"at {second} s one of the life before is open"
    lives = dict.fromkeys(second // 30 for second, _ in failed)
    assert len(lives) == len({second for second, _ in failed}) == 3
    assert len({key for _, key in failed}) == len(failed)
