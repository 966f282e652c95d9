"""What a simulated verl run prints, in the formats of verl 0.9.1, vLLM and Ray. PURE: moments in, lines out.

The lines go through the same reader as a real log, so that there is one path from a line to an event.
"""

from collections.abc import Iterator

from oomwatch_agent.scenario import (
    CARD_TOTAL_GIB,
    CARD_USABLE_GIB,
    HOST_IDLE_GIB,
    HOST_TOTAL_GIB,
    MAX_RESPONSE_TOKENS,
    SEQUENCES_PER_STEP,
    Moment,
    StepNumbers,
)

_HEADS_OF_A_SWITCH = (
    # head, share of the phase's level that the device shows, GiB allocated, GiB reserved
    ("Before resume weights", 0.25, 4.0, 6.0),
    ("After resume weights", 0.6, 4.0, 6.0),
    ("After update_weights", 1.0, 18.0, 24.0),
    ("After offload model to cpu", 0.55, 2.0, 4.0),
)


class Cast:
    """The processes of one life of a run."""

    def __init__(self, first_pid: int, gpus: int) -> None:
        self.driver = first_pid
        self.ranks = tuple(first_pid + 10 + gpu for gpu in range(gpus))
        self.engines = tuple(first_pid + 200 + gpu for gpu in range(gpus))


def lines_at_start(moment: Moment, cast: Cast) -> Iterator[str]:
    """What is printed when a moment begins."""
    rank_0 = f"(WorkerDict pid={cast.ranks[0]})"
    if moment.phase == "gen":
        yield from _awake(moment, cast)
    elif moment.phase == "reward":
        yield from _fallen_asleep(moment, cast)
    elif moment.phase == "update_actor":
        trainer = max(8.0, moment.gib - moment.residue_gib)
        leaked = moment.leaked_gib
        yield _memory(rank_0, "Before load_fsdp_model_to_gpu", moment.residue_gib + leaked + 5, 3 + leaked, 5 + leaked)
        yield _memory(rank_0, "After load_fsdp_model_to_gpu", moment.gib, trainer * 0.82, trainer - 2)
    elif moment.phase == "update_weights":
        for head, share, allocated, reserved in _HEADS_OF_A_SWITCH:
            leaked = moment.leaked_gib
            yield _memory(rank_0, head, moment.gib * share, allocated + leaked, reserved + leaked)


def lines_at_end(moment: Moment, cast: Cast, speed: float) -> Iterator[str]:
    """What is printed when a moment is over: a step line, or what killed the run."""
    if moment.ending is not None:
        yield from _last_words(moment, cast)
    elif moment.finished is not None:
        yield f"(TaskRunner pid={cast.driver}) {_step_line(moment.finished, HOST_IDLE_GIB + moment.host_gib, speed)}"
    elif moment.phase == "update_weights":
        yield from _awake(moment, cast)  # and, in a storm, back to training at once


def _memory(who: str, head: str, device_gib: float, allocated_gib: float, reserved_gib: float) -> str:
    used = min(device_gib, CARD_USABLE_GIB)
    return (
        f"{who} DEBUG:verl.workers.engine_workers:{head}, memory allocated (GB): {allocated_gib:.2f}, "
        f"memory reserved (GB): {reserved_gib:.2f}, device memory used/total (GB): {used:.2f}/{CARD_USABLE_GIB:.2f}"
    )


def _engine(pid: int, text: str) -> str:
    return f"(WorkerDict pid={pid}) INFO 11-29 12:00:00 [gpu_worker.py:132] {text}"


def _fallen_asleep(moment: Moment, cast: Cast) -> Iterator[str]:
    freed = max(0.0, moment.from_gib - moment.residue_gib)
    for pid in cast.engines:
        yield _engine(
            pid, f"Sleep mode freed {freed:.2f} GiB memory, {moment.residue_gib:.2f} GiB memory is still in use."
        )
        yield _engine(pid, "It took 0.412 seconds to fall asleep.")


def _awake(moment: Moment, cast: Cast) -> Iterator[str]:
    """The end of a switch to rollout: the engine has its cache again. One that dies on the way prints none of it."""
    if moment.ending is None:
        rank_0, leaked = f"(WorkerDict pid={cast.ranks[0]})", moment.leaked_gib
        yield _engine(cast.engines[0], "It took 0.512 seconds to wake up tags ['kv_cache'].")
        yield _memory(rank_0, "After resume kv_cache", moment.gib, 2 + leaked, 4 + leaked)


def _step_line(numbers: StepNumbers, host_gib: float, speed: float) -> str:
    seconds = {name: value / speed for name, value in numbers.phase_seconds.items()}
    total_tokens = SEQUENCES_PER_STEP * (numbers.tokens + 310)
    values: dict[str, float | str] = {
        "actor/pg_loss": f"np.float64({-0.0123 * numbers.step:.4f})",
        "actor/lr": "1e-06",
        "perf/max_memory_allocated_gb": numbers.allocated_peak_gib,
        "perf/max_memory_reserved_gb": numbers.reserved_peak_gib,
        "perf/cpu_memory_used_gb": host_gib,
        "response_length/mean": numbers.tokens,
        "response_length/max": min(float(MAX_RESPONSE_TOKENS), numbers.tokens * 2.6),
        "response_length/clip_ratio": numbers.clip_ratio,
        **{f"timing_s/{name}": value for name, value in seconds.items()},
        "timing_s/step": sum(seconds.values()),
        "timing_per_token_ms/gen": seconds["gen"] * 1000 / (SEQUENCES_PER_STEP * numbers.tokens),
        "perf/total_num_tokens": int(total_tokens),
        "training/global_step": numbers.step,
    }
    return f"step:{numbers.step} - " + " - ".join(f"{key}:{value}" for key, value in values.items())


def _last_words(moment: Moment, cast: Cast) -> Iterator[str]:
    worker = f"(WorkerDict pid={cast.ranks[0]})"
    if moment.ending == "device_oom":
        yield f"{worker} {_torch_oom()}"
    elif moment.ending == "wake_oom":
        yield f"{worker} RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62"
    else:
        used, limit = HOST_IDLE_GIB + moment.host_gib, HOST_TOTAL_GIB
        yield (
            f"(raylet) Memory on the node (IP: 192.0.2.7, ID: simulated) where the task (actor ID: simulated, "
            f"name=TaskRunner.__init__, pid={cast.driver}, memory used={used * 0.6:.2f}GB) was running was "
            f"{used:.2f}GB / {limit:.2f}GB ({used / limit:.4f}), which exceeds the memory usage threshold of 0.95. "
            f"Ray killed this worker because it was the most recently scheduled task."
        )


def _torch_oom() -> str:
    free_mib, in_use = 412.75, CARD_TOTAL_GIB - 412.75 / 1024
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of "
        f"{CARD_TOTAL_GIB:.2f} GiB of which {free_mib} MiB is free. Including non-PyTorch memory, this process has "
        f"{in_use:.2f} GiB memory in use. Of the allocated memory {in_use - 7.7:.2f} GiB is allocated by PyTorch, and "
        f"5.11 GiB is reserved by PyTorch but unallocated."
    )
