"""What judging costs: all shipped rules, per GPU and second while nothing happens, and per GPU when a step ends.

    python -m bench.engine

CPU seconds of the process, so that a busy machine shows less. One run on 16 nodes of 8 GPUs, with a probe on each, told
second by second as the server is told. Quiet: half-full cards without a trend. Tight: all of them at 90 %, so that each
card has an open alert, judged every second. Leaking: peaks that rise on all, so that no forecast can be dismissed
cheaply.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench._options import parser_of

from oomwatch import wire
from oomwatch.core.engine import Engine
from oomwatch.rulefile import read_rules

ROOT = Path(__file__).resolve().parents[1]
NODES, GPUS, STEPS, STEP_SECONDS = 16, 8, 40, 40
GIB = 2**30
CARD_BYTES = 80 * GIB
PHASES = {"rollout": 15.0, "old_log_prob": 5.0, "ref": 5.0, "update_actor": 12.0, "update_weights": 3.0}


class Cost(NamedTuple):
    us_per_gpu_second: float
    ms_per_gpu_step: float


def measure(level_gib: Callable[[int], float], seed: int = 0) -> Cost:
    dice, engine = random.Random(seed), Engine(read_rules(ROOT / "alerts.yaml").rules)
    now, seq, told_seconds, step_seconds = 0.0, 0, list[float](), list[float]()
    for node in range(NODES):
        engine.observe(_hello(node), f"n{node}", now)
    for step in range(1, STEPS + 1):
        samples = [_sample(node, level_gib(step), dice) for node in range(NODES)]
        begun = time.process_time()
        for _ in range(STEP_SECONDS):
            now, seq = now + 1, seq + 1
            for node, sample in enumerate(samples):
                engine.observe(wire.Sample(seq=seq, at=now, gpus=sample[0], torch=sample[1]), f"n{node}", now)
            engine.advance(now)
        told_seconds.append(time.process_time() - begun)
        begun = time.process_time()
        engine.observe(wire.Event(seq=seq, at=now, body=_step(step, dice), run="r"), "n0", now)
        step_seconds.append(time.process_time() - begun)
    gpus, half = NODES * GPUS, STEPS // 2
    return Cost(
        1e6 * sum(told_seconds[half:]) / half / STEP_SECONDS / gpus, 1e3 * sum(step_seconds[half:]) / half / gpus
    )


def _hello(node: int) -> wire.Hello:
    cards = [
        wire.GpuFacts(gpu=str(index), uuid=f"{node}-{index}", name="H100", total_bytes=CARD_BYTES)
        for index in range(GPUS)
    ]
    return wire.Hello(
        protocol=1,
        agent_version="0",
        node=f"n{node}",
        session="s",
        sent_at=0,
        interval_seconds=1,
        facts=wire.NodeFacts(gpus=tuple(cards), host=wire.HostFacts(memory_total_bytes=1000 * GIB)),
        run="r",
    )


def _sample(
    node: int, level_gib: float, dice: random.Random
) -> tuple[tuple[wire.GpuSample, ...], tuple[wire.TorchSample, ...]]:
    used = [int((level_gib + dice.gauss(0, 0.5)) * GIB) for _ in range(GPUS)]
    cards = tuple(wire.GpuSample(gpu=str(index), used_bytes=amount) for index, amount in enumerate(used))
    torch = tuple(
        wire.TorchSample(pid=1000 + node * GPUS + index, gpu=str(index), run="r", reserved_bytes=int(amount * 0.9),
                         allocated_bytes=int(amount * 0.8), alloc_retries_total=0)
        for index, amount in enumerate(used)
    )  # fmt: skip
    return cards, torch


def _step(step: int, dice: random.Random) -> wire.Step:
    tokens = dice.gauss(1500, 200)
    return wire.Step(
        step=step,
        step_seconds=STEP_SECONDS,
        rollout_seconds=15,
        phase_seconds=PHASES,
        response_length_mean_tokens=tokens,
        response_length_max_tokens=2 * tokens,
        tokens_total=tokens * 512,
    )


def main() -> None:
    parser_of(__doc__).parse_args()
    for name, level_gib in (
        ("quiet", lambda _: 40.0),
        ("tight", lambda _: 72.0),
        ("leaking", lambda step: 45.0 + 0.5 * step),
    ):
        cost = measure(level_gib)
        print(f"{name}: {cost.us_per_gpu_second:.1f} us a GPU and second, {cost.ms_per_gpu_step:.2f} ms a GPU and step")


if __name__ == "__main__":
    main()
