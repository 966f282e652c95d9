"""What trying a rule file on the last day costs: reading the database, and judging by two rule sets in one pass.

    python -m bench.tryout [GPUS] [HOURS]

Nodes of 8 GPUs with a probe on each and one run over all of them: a colocated trainer's memory, steps of 97 s. In the
tried file one rule has another bound: one at which nothing fires, and one at which every card has an alert all day.
Prints CPU seconds, which a busy machine changes less than the clock's, and the most memory that the process had.
"""

import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench._options import parser_of

from oomwatch import wire
from oomwatch.rulefile import parse_rules
from oomwatch.store.store import Batch, Entry, Store
from oomwatch.tryout.attempt import Wanted, attempt
from oomwatch.tryout.recording import choose, lines_of

ROOT = Path(__file__).resolve().parents[1]
GPUS, FLUSH_SECONDS, STEP_SECONDS = 8, 600, 97
START = 1_700_000_000.0 // 3600 * 3600
MIB = 2**20


def main() -> None:
    """Run and print."""
    parser = parser_of(__doc__)
    parser.add_argument("gpus", type=int, nargs="?", help="by default 8, and then 64")
    parser.add_argument("hours", type=float, nargs="?", default=24.0)
    options = parser.parse_args()
    for gpus, hours in ((size, options.hours) for size in ([options.gpus] if options.gpus else [8, 64])):
        with tempfile.TemporaryDirectory() as folder:
            store = Store.open(f"sqlite:///{folder}/day.db")
            fill(store, gpus // GPUS, hours)
            measure(store, gpus, hours)
            store.close()


def fill(store: Store, nodes: int, hours: float) -> None:
    store.record(Batch(entries=tuple(_hello(node) for node in range(nodes))))
    for begin in range(0, int(hours * 3600), FLUSH_SECONDS):
        for node in range(nodes):
            store.record(Batch(entries=tuple(_entries(node, begin))))
    while store.compact(START + hours * 3600 + 7200):
        pass


def measure(store: Store, gpus: int, hours: float) -> None:
    text, end = (ROOT / "alerts.yaml").read_text(encoding="utf-8"), START + hours * 3600
    in_force = parse_rules(text).rules
    seconds = gpus * hours * 3600
    begun = time.process_time()
    lines = sum(1 for _ in lines_of(store, choose(store), START, end))
    read = time.process_time() - begun
    told = f"{gpus} GPUs, {hours:g} h, {lines:,} lines"
    print(f"{told}: read in {read:.1f} s, {1e6 * read / seconds:.1f} us a GPU and second")
    for bound in ("87%", "80%"):
        tried = parse_rules(text.replace("gpu_used_ratio, above: 85%", f"gpu_used_ratio, above: {bound}")).rules
        for judge_all in (False, True):
            begun = time.process_time()
            wanted = Wanted(end_at=end, hours=hours, budget_seconds=7200, judge_all=judge_all)
            found = attempt(store, tried, in_force, wanted)
            spent = time.process_time() - begun
            print(f"  above {bound}, {'all rules' if judge_all else 'what differs'}: {spent:.1f} s,", end=" ")
            print(f"{1e6 * spent / seconds:.1f} us a GPU and second; {found.count} alerts", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  at most {peak:.0f} MiB")


def _hello(node: int) -> Entry:
    cards = tuple(
        wire.GpuFacts(gpu=str(gpu), uuid=f"GPU-{node}-{gpu}", name="H100", total_bytes=80 * 1024 * MIB)
        for gpu in range(GPUS)
    )
    facts = wire.NodeFacts(gpus=cards, host=wire.HostFacts(memory_total_bytes=1000 * 1024 * MIB))
    hello = wire.Hello(
        protocol=1, agent_version="0", node=f"node-{node}", session=f"s{node}", sent_at=START, interval_seconds=1.0,
        facts=facts, run="bench",
    )  # fmt: skip
    return Entry(node=hello.node, session=hello.session, received_at=START, message=hello)


def _entries(node: int, begin: int) -> Iterator[Entry]:
    dice = random.Random(node * 1_000_003 + begin)
    for second in range(begin, begin + FLUSH_SECONDS):
        at = START + second + 0.5
        used = [_used_mib(gpu, second + 7 * node) + dice.randrange(300) for gpu in range(GPUS)]
        sample = wire.Sample(
            seq=2 * second + 1,
            at=at,
            gpus=tuple(_gpu(gpu, amount) for gpu, amount in enumerate(used)),
            host=wire.HostSample(memory_used_bytes=(400 * 1024 + dice.randrange(200)) * MIB, oom_kill_total=0),
            torch=tuple(_torch(gpu, amount) for gpu, amount in enumerate(used)),
        )
        yield Entry(node=f"node-{node}", session=f"s{node}", received_at=at, message=sample)
        if node == 0 and second % STEP_SECONDS == 0:
            event = wire.Event(seq=2 * second + 2, at=at, body=_step(second // STEP_SECONDS, dice), run="bench")
            yield Entry(node=f"node-{node}", session=f"s{node}", received_at=at, message=event)


def _used_mib(gpu: int, second: int) -> int:
    """Of a card of 80 GiB, 71 to 84 %: the higher half while it trains."""
    return (58_000 if second % STEP_SECONDS >= 40 else 68_600) + 2 * gpu


def _gpu(gpu: int, used_mib: int) -> wire.GpuSample:
    return wire.GpuSample(
        gpu=str(gpu), used_bytes=used_mib * MIB, utilization_ratio=0.97, power_watts=640.0, temperature_celsius=61.0,
        ecc_uncorrected_total=0,
    )  # fmt: skip


def _torch(gpu: int, used_mib: int) -> wire.TorchSample:
    reserved, allocated = used_mib * 9 // 10 * MIB, used_mib * 8 // 10 * MIB
    return wire.TorchSample(
        pid=1000 + gpu, gpu=str(gpu), run="bench", reserved_bytes=reserved, allocated_bytes=allocated,
        alloc_retries_total=0,
    )  # fmt: skip


def _step(number: int, dice: random.Random) -> wire.Step:
    phases = {"rollout": 40.0, "old_log_prob": 12.0, "update_actor": 40.0, "update_weights": 5.0}
    return wire.Step(
        step=number, step_seconds=97.0, rollout_seconds=40.0, phase_seconds=phases,
        response_length_mean_tokens=2000 + dice.gauss(0, 60), response_clip_ratio=0.01,
    )  # fmt: skip


if __name__ == "__main__":
    main()
