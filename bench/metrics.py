"""What a scrape of /metrics costs at 1,024 GPUs, and what the exported rules and remote write do with it.

    python -m bench.metrics [--nodes 128] [--rounds 20]

A service with 8 GPUs a node, probes of three roles on each, two rollout engines a node and a run on sixteen nodes, all
of it fresh; then the same with every GPU's alert firing. `read` runs in the server's event loop, the rest in threads.
"""

import statistics
import time
from collections.abc import Callable

import cramjam
from bench._options import parser_of

from oomwatch import wire
from oomwatch.core.rule import RuleSet
from oomwatch.metrics.page import Metrics, encode
from oomwatch.rulefile import parse_rules
from oomwatch.senders.batches import Packer
from oomwatch.service.journal import Journal
from oomwatch.service.service import Service
from oomwatch.settings import Settings

GIB = 2**30
GPUS, ROLES, RUN_NODES = 8, ("actor", "rollout", "ref"), 16
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
RULES = """
rules:
  - alert: full
    severity: warning
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    summary: full
"""


class Nobody:
    """No browser watches, no channel is told, nothing is stored, and no agent listens."""

    def __len__(self) -> int:
        return 0

    def longest_queue(self) -> int:
        return 0

    def publish(self, messages: object) -> None: ...
    def status(self) -> list[wire.ChannelState]:
        return []

    def offer(self, transitions: object) -> None: ...
    def append(self, transitions: object) -> None: ...
    def record(self, entries: object) -> None: ...
    def acknowledge(self, seq: int) -> None: ...
    def ask(self, request: object) -> None: ...
    def dismiss(self, refused: object) -> None: ...


async def _call(fn: Callable[..., object], *arguments: object) -> object:
    return fn(*arguments)


def service_of(nodes: int, used_gib: float, rules: RuleSet) -> Service:
    nobody = Nobody()
    service = Service(rules, nobody, nobody)
    service.attach(Journal(nobody, _call, service.tell, flush_seconds=Settings().flush_interval))
    for number in range(nodes):
        _tell_of_node(service, number, used_gib)
    return service


def _tell_of_node(service: Service, number: int, used_gib: float) -> None:
    node, now = f"gpu-node-{number:03}", time.time()
    cards = tuple(
        wire.GpuFacts(gpu=str(gpu), uuid=f"GPU-{number:08x}-{gpu}", name="NVIDIA H100 80GB HBM3", total_bytes=80 * GIB)
        for gpu in range(GPUS)
    )
    facts = wire.NodeFacts(gpus=cards, host=wire.HostFacts(memory_total_bytes=2000 * GIB))
    hello = wire.Hello(
        protocol=1, agent_version="bench", node=node, session="s", sent_at=now, interval_seconds=60.0, facts=facts,
        run=f"qwen7b_grpo_{number // RUN_NODES}",
    )  # fmt: skip
    session = service.reception.admit(hello, Nobody(), 0)
    service.reception.take(session, _sample(now, used_gib))
    step = wire.Step(step=7, step_seconds=90.0, rollout_seconds=30.0, reshard_seconds=3.0)
    phase = wire.TorchMemory(reserved_bytes=GIB, phase="rollout", gpu="0")
    bodies: tuple[wire.EventBody, ...] = (step, phase)
    for seq, body in enumerate(bodies, start=2):
        service.reception.take(session, wire.Event(seq=seq, at=now, body=body))


def _sample(now: float, used_gib: float) -> wire.Sample:
    gpus = tuple(
        wire.GpuSample(
            gpu=str(gpu), used_bytes=int(used_gib * GIB), utilization_ratio=0.93, power_watts=612.5,
            temperature_celsius=61.0,
        )
        for gpu in range(GPUS)
    )  # fmt: skip
    torch = tuple(
        wire.TorchSample(
            pid=1000 * gpu + index, gpu=str(gpu), role=role, reserved_bytes=9 * GIB, allocated_bytes=7 * GIB,
            alloc_retries_total=0,
        )
        for gpu in range(GPUS)
        for index, role in enumerate(ROLES)
    )  # fmt: skip
    engines = tuple(
        wire.EngineSample(
            engine="vllm", address=f"127.0.0.1:{port}", kv_used_ratio=0.5, requests_running=64, requests_waiting=3,
            preemptions_total=12,
        )
        for port in (8000, 8001)
    )  # fmt: skip
    host = wire.HostSample(memory_used_bytes=700 * GIB)
    return wire.Sample(seq=1, at=now, gpus=gpus, host=host, torch=torch, engines=engines)


def median_ms(rounds: int, work: Callable[[], object]) -> float:
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return 1000 * statistics.median(took)


def figures(service: Service, rounds: int) -> dict[str, float]:
    nobody = Nobody()
    metrics = Metrics(service, list, nobody)
    told = metrics.collect()
    packer = Packer({"job": "oomwatch", "instance": "bench"}, lambda body: bytes(cramjam.snappy.compress_raw(body)))
    return {
        "series": sum(len(metric.samples) for metric in told),
        "page, KiB": len(encode(told).content) / 1024,
        "packed, KiB": len(encode(told, accept_encoding="gzip").content) / 1024,
        "remote write, KiB": sum(len(batch.body) for batch in packer.pack(told, 0)) / 1024,
        "read, ms": median_ms(rounds, metrics.read),
        "make families, ms": median_ms(rounds, metrics.read()),
        "write text, ms": median_ms(rounds, lambda: encode(told)),
        "write OpenMetrics, ms": median_ms(rounds, lambda: encode(told, OPENMETRICS)),
        "write and pack text, ms": median_ms(rounds, lambda: encode(told, accept_encoding="gzip")),
        "remote write, ms": median_ms(rounds, lambda: packer.pack(told, 0)),
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--nodes", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    rules = parse_rules(RULES).rules
    quiet, firing = (figures(service_of(options.nodes, used, rules), options.rounds) for used in (40.0, 76.0))
    print(f"{options.nodes} nodes, {options.nodes * GPUS} GPUs; medians of {options.rounds}")
    print(f"{'':28}{'quiet':>12}{'all firing':>12}")
    for name, value in quiet.items():
        print(f"{name:28}{value:12,.1f}{firing[name]:12,.1f}")


if __name__ == "__main__":
    main()
