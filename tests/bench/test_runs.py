"""The runs of bench/warnings obey the arithmetic that they are made of."""

from itertools import chain, islice

import pytest
from bench.warnings import scenarios
from bench.warnings.nature import Growth
from bench.warnings.scenarios import Made, make
from bench.warnings.settings import ACTOR, MODEL, ROLLOUT
from bench.warnings.simulate import Story, simulate, truth_of
from bench.warnings.tell import lines

from oomwatch import wire

SEED = 7


def peak_of(made: Made, story: Story, phase: str) -> float:
    """Share of the card, over all GPUs and steps."""
    stretches = [one for one in story.stretches if one.phase == phase]
    used = (level.used for one in stretches for levels in one.levels for level in levels)
    return max(used) / made.spec.card.usable_bytes


def short(made: Made, steps: int = 12) -> Made:
    spec = made.spec._replace(steps=steps)
    return Made(spec, simulate(spec))


@pytest.mark.parametrize("scenario", scenarios.SCENARIOS)
def test_a_run_ends_as_its_scenario_says(scenario: str) -> None:
    made = make(scenario, SEED)
    truth = truth_of(made.spec, made.story)
    assert truth.fails == (made.spec.family != "healthy")
    assert (made.spec.cause is not None) == truth.fails
    assert made.spec.cause is None or made.spec.cause in wire.CAUSES
    if truth.fails:
        assert (truth.gpu is None) == (made.story.ending is not None and made.story.ending.kind in ("host", "disk"))


@pytest.mark.parametrize("scenario", ["packed", "packed_rollout", "tight", "noisy_lengths"])
def test_a_healthy_run_never_exceeds_its_card(scenario: str) -> None:
    made = make(scenario, SEED)
    highest = max(peak_of(made, made.story, phase) for phase in ("rollout", "old_log_prob", "update_actor"))
    assert highest <= 1.0
    if scenario == "packed":
        assert 0.97 < highest < 0.992


def test_the_same_seed_tells_the_same_lines() -> None:
    first, again = (short(make("leak_fast", SEED)) for _ in range(2))
    assert list(lines(first.spec, first.story)) == list(lines(again.spec, again.story))


def test_another_seed_tells_others() -> None:
    one, other = (short(make("roomy", seed)) for seed in (SEED, SEED + 1))
    assert list(islice(lines(one.spec, one.story), 50)) != list(islice(lines(other.spec, other.story), 50))


@pytest.mark.parametrize(
    ("phase", "key"),
    [
        ("update_actor", f"{ACTOR}.ppo_micro_batch_size_per_gpu"),
        ("old_log_prob", f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"),
        ("ref", "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu"),
    ],
)
def test_half_the_micro_batch_lowers_the_peak_of_its_phase(phase: str, key: str) -> None:
    made = short(make("longest_update", SEED))
    size = int(made.spec.config[key])
    smaller = simulate(made.spec, {key: max(1, size // 2), f"{ACTOR}.fsdp_config.param_offload": True})
    same = simulate(made.spec, {f"{ACTOR}.fsdp_config.param_offload": True})
    assert size > 1
    assert peak_of(made, smaller, phase) < peak_of(made, same, phase)


@pytest.mark.parametrize(
    ("phase", "change"),
    [
        ("rollout", {f"{ROLLOUT}.gpu_memory_utilization": 0.3}),
        ("update_actor", {f"{MODEL}.use_fused_kernels": True}),
        ("update_actor", {f"{ACTOR}.entropy_from_logits_with_chunking": True}),
        ("update_actor", {f"{ACTOR}.use_dynamic_bsz": True, f"{ACTOR}.ppo_max_token_len_per_gpu": 2048}),
        ("update_actor", {f"{ACTOR}.ulysses_sequence_parallel_size": 2}),
        ("update_actor", {"data.max_response_length": 256}),
        ("update_weights", {f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes": 256}),
        ("rollout", {f"{ROLLOUT}.enforce_eager": True}),
        ("rollout", {f"{ACTOR}.fsdp_config.optimizer_offload": True, f"{ACTOR}.fsdp_config.param_offload": True}),
        ("rollout", {f"{MODEL}.lora_rank": 32}),
    ],
)
def test_a_remedy_lowers_the_peak_that_it_is_for(phase: str, change: dict[str, wire.ConfigValue]) -> None:
    made = short(make("leak_when_full", SEED))
    kept = {f"{ACTOR}.fsdp_config.{key}_offload": False for key in ("param", "optimizer")}
    plain = {**made.spec.config, **kept, f"{ROLLOUT}.enforce_eager": False, f"{ROLLOUT}.gpu_memory_utilization": 0.5}
    made = short(made._replace(spec=made.spec._replace(config=plain)))
    assert peak_of(made, simulate(made.spec, change), phase) < peak_of(made, made.story, phase)


def test_an_engine_that_sleeps_leaves_room_for_the_update() -> None:
    made = short(make("awake", SEED))
    asleep = simulate(made.spec, {f"{ROLLOUT}.free_cache_engine": True})
    assert peak_of(made, asleep, "update_actor") < peak_of(made, made.story, "update_actor")


def test_a_leak_fills_the_card_and_a_restart_frees_it() -> None:
    made = make("leak_fast", SEED)
    restarted = made.spec._replace(nature=made.spec.nature._replace(restart_every=4))
    assert made.story.ending is not None
    assert simulate(restarted).ending is None


def test_a_restart_repeats_steps_in_another_segment() -> None:
    made = make("restarts", SEED)
    (at, back), _ = made.spec.nature.restarts
    told = [(one.segment, one.step) for one in made.story.finished]
    assert told[at - 2 : at] == [(0, at - 1), (1, at - back)]
    assert told[-1] == (2, made.spec.steps)


def test_what_grows_begins_again_after_a_restart() -> None:
    growth = Growth(per_step=2.0, onset=10, until=20)
    assert [growth.at(step) for step in (5, 10, 15, 40)] == [0.0, 0.0, 10.0, 20.0]
    assert growth.at(18, since=15) == 6.0


def test_a_step_line_comes_late_and_samples_come_each_second() -> None:
    made = short(make("leak_fast", SEED), steps=4)
    made = made._replace(spec=made.spec._replace(tells=made.spec.tells._replace(steps=True)))
    told = [line.message for line in lines(made.spec, made.story) if line.message is not None]
    late = [
        message.at - finished.at
        for message, finished in zip(
            (one for one in told if isinstance(one, wire.Event) and isinstance(one.body, wire.Step)),
            made.story.finished,
            strict=False,
        )
    ]
    seconds = [message.at for message in told if isinstance(message, wire.Sample)]
    assert late
    assert all(0.5 <= one <= 1.5 for one in late)
    assert seconds == [float(second) for second in range(1, len(seconds) + 1)]


def test_time_never_goes_back_in_a_trace() -> None:
    made = short(make("residue_slow", SEED), steps=6)
    times = [line.now if line.advance is None else line.advance for line in lines(made.spec, made.story)]
    assert times == sorted(times, key=lambda at: at or 0.0)


def test_a_run_without_a_trainers_signal_is_samples_alone() -> None:
    made = short(make("leak_slow", SEED), steps=3)
    silent = made.spec._replace(tells=made.spec.tells._replace(steps=False, config=False, sleeps=False, probe=False))
    told = {type(line.message) for line in lines(silent, made.story) if line.message is not None}
    assert told == {wire.Hello, wire.Sample}


def test_a_failing_run_ends_with_its_message() -> None:
    for scenario, kind in (
        ("leak_fast", wire.DeviceOom),
        ("driver_grows", wire.HostOom),
        ("disk_spill", wire.DiskFull),
    ):
        made = make(scenario, SEED)
        last = [one.message for one in lines(made.spec, made.story) if isinstance(one.message, wire.Event)][-1]
        assert isinstance(last, wire.Event)
        assert isinstance(last.body, kind)


def test_tuning_and_reporting_share_no_seed() -> None:
    assert not set(islice(scenarios.TUNING_SEEDS, 10)) & set(scenarios.REPORTING_SEEDS)
    assert scenarios.TUNING_SEEDS.stop <= scenarios.REPORTING_SEEDS.start


def test_about_two_of_five_runs_are_healthy() -> None:
    names = scenarios.names_for(range(2000))
    healthy = sum(scenarios.SCENARIOS[name].__module__.endswith(".healthy") for name in names)
    assert 0.33 < healthy / len(names) < 0.47


def test_levels_are_in_order_and_within_their_phase() -> None:
    made = make("leak_slow", SEED)
    for levels in chain.from_iterable(one.levels for one in made.story.stretches):
        places = [level.at for level in levels]
        assert places[0] == 0.0
        assert places == sorted(places)
        assert places[-1] <= 1.0
