"""Makes the traces of this folder and what the engine says to them. Run it from the root of the repository:

    python -m tests.replay.make_traces

Look at the difference it makes in traces/*.transitions.jsonl before you commit it: that is what changed for users.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from oomwatch import wire
from oomwatch.rulefile import read_rules
from oomwatch.trace import Line, replay

HERE = Path(__file__).parent
TRACES = HERE / "traces"
RULES = HERE / "rules.yaml"
METRICS = HERE.parent / "fixtures" / "verl-0.9.1-slow-rollout" / "metrics.jsonl"
START = 1_700_000_000.0
INTERVAL_SECONDS = 5.0
GIB = 2**30


class Tape:
    """Records one node that is told of, five seconds at a time."""

    def __init__(self, node: str, *, gpus: int, run: str | None = None) -> None:
        self.now = START
        self.lines: list[Line] = []
        self._node = node
        self._seq = 0
        cards = tuple(
            wire.GpuFacts(gpu=str(index), uuid=f"GPU-{index}", name="H100", total_bytes=80 * GIB)
            for index in range(gpus)
        )
        facts = wire.NodeFacts(gpus=cards, host=wire.HostFacts(memory_total_bytes=1000 * GIB))
        greeting = wire.Hello(
            protocol=1,
            agent_version="0.1.0",
            node=node,
            session="tape",
            sent_at=START,
            interval_seconds=INTERVAL_SECONDS,
            facts=facts,
            run=run,
        )
        self.say(greeting)

    def say(self, message: wire.AgentMessage) -> None:
        self.lines.append(Line(now=self.now, node=self._node, message=message))

    def read(self, *used_gib: float, host_gib: float = 300.0) -> None:
        self._seq += 1
        cards = tuple(
            wire.GpuSample(gpu=str(index), used_bytes=round(used * GIB)) for index, used in enumerate(used_gib)
        )
        host = wire.HostSample(memory_used_bytes=round(host_gib * GIB))
        self.say(wire.Sample(seq=self._seq, at=self.now, gpus=cards, host=host))

    def event(self, body: wire.EventBody, run: str | None = None) -> None:
        self._seq += 1
        origin = wire.Origin(source="driver.log", pid=4711)
        self.say(wire.Event(seq=self._seq, at=self.now, body=body, run=run, origin=origin))

    def wait(self) -> None:
        self.now += INTERVAL_SECONDS
        self.lines.append(Line(advance=self.now))


def leak() -> list[Line]:
    """Two cards on the sawtooth of 60-second steps. On one of them torch keeps more from step to step, until it is
    restarted with less."""
    tape = Tape("gpu-07", gpus=2, run="qwen7b")
    for tick in range(240):
        phase = math.sin(tick * math.tau / 12)
        grown = min(tick, 170) * 0.12
        level = 55 + grown if tick < 200 else 40
        tape.read(level + 6 * phase, 50 + 8 * phase)
        if tick % 4 == 0:
            reserved = round((level + max(0.0, 6 * phase)) * GIB)
            tape.event(wire.TorchMemory(reserved_bytes=reserved, gpu="0", phase="update_actor"))
        if tick % 12 == 11:
            step = tick // 12 + 1
            tape.event(wire.Step(step=step, step_seconds=60.0, rollout_seconds=25.0))
        tape.wait()
    return tape.lines


def slow_rollout() -> list[Line]:
    """The steps of a real verl 0.9.1 logger, each read when it ended; the switch to rollout is marked in each."""
    tape = Tape("gpu-07", gpus=1, run="qwen7b")
    for line in METRICS.read_bytes().splitlines():
        metrics = msgspec.json.decode(line)
        figures: dict[str, float] = metrics["data"]
        ends_at = tape.now + figures["timing_s/step"]
        tape.event(wire.Reshard(marker="resume_kv_cache"))
        while tape.now < ends_at:
            tape.read(50.0)
            tape.wait()
        tape.event(
            wire.Step(
                step=metrics["step"],
                step_seconds=figures["timing_s/step"],
                rollout_seconds=figures["timing_s/gen"],
                response_length_mean_tokens=figures.get("response_length/mean"),
            )
        )
    return tape.lines


def host_and_silence() -> list[Line]:
    """The host's memory fills until the kernel kills a worker; then the agent falls silent, comes back and stops."""
    tape = Tape("gpu-08", gpus=1)
    for tick in range(60):
        tape.read(30.0, host_gib=min(985.0, 700.0 + 8 * tick) if tick < 45 else 400.0)
        if tick == 44:
            tape.event(wire.HostOom(reporter="kernel", process="ray::WorkerDict", pid=4711))
        tape.wait()
    for _ in range(12):
        tape.wait()
    for _ in range(12):
        tape.read(30.0)
        tape.wait()
    tape.say(wire.Bye(seq=1000, at=tape.now))
    for _ in range(20):
        tape.wait()
    return tape.lines


SCENARIOS: dict[str, Callable[[], list[Line]]] = {
    "leak": leak,
    "slow-rollout": slow_rollout,
    "host-and-silence": host_and_silence,
}


def files() -> Iterator[tuple[Path, bytes]]:
    """Every file of traces/, as it should be."""
    rules = read_rules(RULES).rules
    for name, scenario in SCENARIOS.items():
        lines = scenario()
        yield TRACES / f"{name}.jsonl", b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        said = replay(lines, rules)
        yield TRACES / f"{name}.transitions.jsonl", b"".join(msgspec.json.encode(one) + b"\n" for one in said)


if __name__ == "__main__":
    for path, content in files():
        path.write_bytes(content)
