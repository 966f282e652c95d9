"""verl's memory and step lines in all their ages, and what people print themselves."""

import pytest

from oomwatch import wire
from oomwatch_agent.logs.phases import STEP_ORDER, head_of, phase_of_function
from oomwatch_agent.logs.reader import LineReader

GIB = 1024**3


def gib(number: float) -> int:
    return round(number * GIB)


def bodies(line: str) -> list[wire.EventBody]:
    return [found.body for found in LineReader().feed(line, 1)]


def step(line: str) -> wire.Step:
    (body,) = bodies(line)
    assert isinstance(body, wire.Step)
    return body


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            (
                "DEBUG:verl.workers.engine_workers:After update_weights, memory allocated (GB): 18.05, "
                "memory reserved (GB): 24.05, device memory used/total (GB): 44.45/79.15"
            ),
            [
                wire.TorchMemory(
                    reserved_bytes=gib(24.05),
                    allocated_bytes=gib(18.05),
                    device_used_bytes=gib(44.45),
                    device_total_bytes=gib(79.15),
                    at_point="After update_weights",
                    phase="update_weights",
                ),
                wire.Reshard(marker="update_weights"),
            ],
        ),
        (
            (
                "DEBUG:2026-07-23 18:43:23,844:After switch to rollout mode, memory allocated (GB): 1.0, "
                "memory reserved (GB): 2.0, device memory used/total (GB): 3.0/79.15"
            ),
            [
                wire.TorchMemory(
                    reserved_bytes=gib(2),
                    allocated_bytes=gib(1),
                    device_used_bytes=gib(3),
                    device_total_bytes=gib(79.15),
                    at_point="After switch to rollout mode",
                    phase="rollout",
                ),
                wire.Reshard(marker="switch_to_rollout"),
            ],
        ),
        (
            # before April 2025: long floats, no device part
            (
                "After state_dict() in sharding manager memory, memory allocated (GB): 14.187742233276367, "
                "memory reserved (GB): 16.494140625"
            ),
            [
                wire.TorchMemory(
                    reserved_bytes=gib(16.494140625),
                    allocated_bytes=gib(14.187742233276367),
                    at_point="After state_dict() in sharding manager memory",
                    phase="update_weights",
                ),
                wire.Reshard(marker="state_dict_memory"),
            ],
        ),
        (
            (
                "Memory-Usage critic values: memory allocated (GB): 7.08, memory reserved (GB): 9.5, "
                "device memory used/total (GB): 12.0/79.15"
            ),
            [
                wire.TorchMemory(
                    reserved_bytes=gib(9.5),
                    allocated_bytes=gib(7.08),
                    device_used_bytes=gib(12),
                    device_total_bytes=gib(79.15),
                    at_point="critic values",
                    phase="values",
                )
            ],
        ),
        (
            "[actor] a head of somebody's own, memory allocated (GB): 1, memory reserved (GB): 2",
            [wire.TorchMemory(reserved_bytes=2 * GIB, allocated_bytes=GIB)],
        ),
        ("Step 100: Reserved 61.23 GB", [wire.TorchMemory(reserved_bytes=gib(61.23), step=100)]),
        (
            "[after update] Allocated: 41.20 GB, Reserved: 55.01 GB",
            [wire.TorchMemory(reserved_bytes=gib(55.01), allocated_bytes=gib(41.20))],
        ),
        (
            "MA 41.54 GB         Max_MA 46.18 GB         CA 50.92 GB         Max_CA 51 GB",
            [wire.TorchMemory(reserved_bytes=gib(50.92), allocated_bytes=gib(41.54))],
        ),
        ("GPU memory reserved: 61.23 GB", [wire.TorchMemory(reserved_bytes=gib(61.23))]),
        (
            "Step 7 | Allocated: 512 MiB | Reserved: 1.5 GiB",
            [wire.TorchMemory(reserved_bytes=gib(1.5), allocated_bytes=gib(0.5), step=7)],
        ),
        (
            "After sync model weights in sharding manager: 58.32 GB / 79.19 GB.",
            [
                wire.TorchMemory(
                    device_used_bytes=round(58.32 * GIB),
                    device_total_bytes=round(79.19 * GIB),
                    at_point="After sync model weights in sharding manager",
                    phase="update_weights",
                ),
                wire.Reshard(marker="sync_weights"),
            ],
        ),
        ("[INFO] re-sharding parameters for actor model", [wire.Reshard(marker="resharding_parameters")]),
        ("INFO re-sharding parameters for actor model", [wire.Reshard(marker="resharding_parameters")]),
        ("INFO 11-29 10:00:00 re-sharding parameters for actor model", [wire.Reshard(marker="resharding_parameters")]),
        (
            "[2026-11-29 10:00:00] INFO re-sharding parameters for actor model",
            [wire.Reshard(marker="resharding_parameters")],
        ),
        ("they spoke of re-sharding parameters for actor model", []),
        ("After x, memory allocated (GB): nan, memory reserved (GB): nan", []),
        ("After x, memory allocated (GB): 1, memory reserved (GB): -2", []),
    ],
)
def test_memory_lines_of_every_age(line: str, expected: list[wire.EventBody]) -> None:
    assert bodies(line) == expected


def test_every_known_head_leads_to_a_listed_phase() -> None:
    assert head_of("[actor] After Update_Weights") == head_of("After update_weights")
    assert head_of("After lunch") is None
    for name in ("actor_rollout_update_actor", "ref_compute_ref_log_prob", "critic_update_critic", "_validate"):
        assert phase_of_function(name) in wire.PHASES


@pytest.mark.parametrize("what", ["load_fsdp_model_to_gpu", "load_fsdp_optimizer", "load_megatron_model_to_gpu"])
def test_what_is_loaded_back_ends_the_rollout_and_what_is_offloaded_does_not(what: str) -> None:
    figures = "memory allocated (GB): 1, memory reserved (GB): 2"
    loaded, offloaded = f"[actor] Before {what}", f"After off{what}".replace("to_gpu", "to_cpu")
    for head, phase in ((loaded, "rollout"), (offloaded, None)):
        (body,) = bodies(f"{head}, {figures}")
        assert isinstance(body, wire.TorchMemory)
        assert body.at_point is not None
        assert (body.phase, body.ends_phase) == (None, phase)


def test_a_full_step_line_is_normalised() -> None:
    line = (
        "step:12 - actor/pg_loss:np.float64(-0.0123) - actor/lr:1e-06 - perf/max_memory_reserved_gb:40.5 - "
        "critic/perf/max_memory_reserved_gb:44.25 - perf/max_memory_allocated_gb:37.5 - "
        "perf/cpu_memory_used_gb:414.0 - "
        "response_length/mean:615.75 - response_length/max:1601.0 - response_length/clip_ratio:np.float64(0.03) - "
        "timing_s/update_weights:3.25 - timing_s/gen:29.85 - timing_s/testing:90.5 - timing_s/adv:0.2 - "
        "timing_s/save_checkpoint:12.0 - timing_s/old_log_prob:8.4 - timing_s/step:94.05 - "
        "timing_per_token_ms/gen:0.0673 - perf/total_num_tokens:666555"
    )
    assert step(line) == wire.Step(
        step=12,
        step_seconds=94.05,
        rollout_seconds=29.85,
        reshard_seconds=3.25,
        phase_seconds={
            "rollout": 29.85,
            "old_log_prob": 8.4,
            "adv": 0.2,
            "save_checkpoint": 12.0,
            "update_weights": 3.25,
            "validation": 90.5,
        },
        torch_reserved_peak_bytes=gib(44.25),
        torch_allocated_peak_bytes=gib(37.5),
        host_used_bytes=gib(414),
        response_length_mean_tokens=615.75,
        response_length_max_tokens=1601.0,
        response_clip_ratio=0.03,
        rollout_ms_per_token=0.0673,
        tokens_total=666555.0,
    )


@pytest.mark.parametrize(("told", "mean"), [("1.25", 1.25), ("0.0", 0.0), ("-1.0", None)])
def test_how_often_sequences_were_put_back_is_read_where_the_engine_counts_it(told: str, mean: float | None) -> None:
    line = f"step:3 - timing_s/agent_loop/num_preempted/mean:{told} - timing_s/gen:20.0"
    assert step(line).preemptions_mean == mean


def test_phases_keep_the_order_in_which_they_ran() -> None:
    names = ["save_checkpoint", "update_weights", "gen", "update_actor", "ref"]
    line = "step:1 - " + " - ".join(f"timing_s/{name}:1.0" for name in names)
    assert [*step(line).phase_seconds] == ["rollout", "ref", "update_actor", "save_checkpoint", "update_weights"]
    assert set(step(line).phase_seconds) < set(STEP_ORDER)


@pytest.mark.parametrize(
    ("metrics", "seconds"),
    [
        ("timing_s/gen:1.0 - timing/gen:2.0", 1.0),
        ("timing/gen:2.0 - timing_s/generate_sequences:3.0", 2.0),
        ("timing_s/generate_sequences:3.0 - rollout_time_per_step:4.0 - actor/lr:0", 3.0),
        ("rollout_time_per_step:4.0 - actor/lr:0", 4.0),
        ("timing_s/gen:nan - timing/gen:2.0", 2.0),
        ("timing_s/gen:inf", None),
        ("timing_s/gen:-1", None),
        ("timing_s/gen: - actor/lr:0.1", None),
    ],
)
def test_rollout_time_comes_from_the_best_key(metrics: str, seconds: float | None) -> None:
    assert step(f"step:1 - {metrics}").rollout_seconds == seconds


@pytest.mark.parametrize(
    ("metrics", "seconds"),
    [
        ("timing_s/reshard:1.5 - timing_s/update_weights:9.0", 1.5),
        ("timing_s/switch_to_rollout:1.0 - timing_s/switch_to_trainer:2.0", 3.0),
        ("timing_s/switch_to_rollout:1.0 - timing_s/switch_to_trainer:2.0 - timing_s/switch_wait:0.5", 3.5),
        ("timing_s/update_weights:3.0", 3.0),
        ("timing_s/param_sync:4.0", 4.0),
        ("timing_s/gen:4.0", None),
    ],
)
def test_reshard_time_comes_from_the_best_key(metrics: str, seconds: float | None) -> None:
    assert step(f"step:1 - {metrics}").reshard_seconds == seconds


@pytest.mark.parametrize(
    ("line", "only"),
    [
        ("step:0 - val-core/openai/gsm8k/acc/mean@1:np.float64(0.41) - val-aux/num_turns/mean:2.0", True),
        ("step:0 - val/test_score/openai/gsm8k:0.412 - timing_s/testing:88.0 - training/global_step:0", True),
        ("step:10 - val-core/openai/gsm8k/acc/mean@1:0.5 - timing_s/gen:3.0", False),
        ("step:10 - training/global_step:10", False),
    ],
)
def test_a_step_with_validation_figures_alone_trained_nothing(line: str, only: bool) -> None:
    assert step(line).validation_only is only


def test_a_line_of_the_file_logger_is_the_same_step() -> None:
    told = "timing_s/gen:29.850418667261618 - actor/lr:1e-06 - timing_s/step:94.05041866726162"
    figures = '"timing_s/gen": 29.850418667261618, "actor/lr": 1e-06, "timing_s/step": 94.05041866726162'
    kept = f'{{"step": 7, "data": {{{figures}}}}}'
    assert step(kept) == step(f"step:7 - {told}")
    assert step('{"step": 7, "data": {"timing_s/gen": NaN, "actor/lr": -Infinity}}') == wire.Step(step=7)
