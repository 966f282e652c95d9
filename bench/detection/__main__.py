"""How long from a memory step on a card to the webhook, for oomwatch and for what one would otherwise use.

    python -m bench.detection [--nodes 8] [--gpus 4] [--over 60] [--seed 1]

In one run on one machine, on the same cards (those of the stand-in for NVIDIA's library in tests/nvml), stand

  oomwatch      the real agent of each node, once a second, the real server; the shipped rule gpu_memory_high without
                its hold time, group_wait as shipped
  aggressive    an exporter a node that reads its cards at each scrape, Debian's Prometheus (scrape and evaluation each
                second, for 0s) and Alertmanager (group_wait 0s)
  usual         the same, but reads every 30 s, scrape and evaluation every 15 s, for 30s, group_wait 30s

Every card fills up once, at a moment of its own within --over seconds, and each counts from the moment on at which the
library says so. Each node's agent and exporter has its own place within the second, as on real nodes.
"""

import argparse
import contextlib
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

from bench._options import parser_of
from bench.detection.receiver import Card, Told, receiving
from bench.detection.sides import AGGRESSIVE, USUAL, Nodes, alternative, ours
from tests.nvml.standin import GIB, ScriptedGpus, build

SIDES = ["oomwatch", "aggressive", "usual"]
BEFORE_BYTES, AFTER_BYTES = 40 * GIB, 76 * GIB  # of 80
SETTLE_SECONDS = 15.0  # past the start of every program, and the agents' first slow reads
LATEST_SECONDS = 240.0  # the usual settings add up to two minutes


def take_memory(nodes: Nodes, over_seconds: float, dice: random.Random) -> dict[Card, float]:
    """Fill up each card at a moment of its own; when that was (monotonic)."""
    cards = [Card(node, str(index)) for node, gpus in nodes.items() for index in range(len(gpus))]
    dice.shuffle(cards)
    started, taken = time.monotonic(), {}
    for card, moment in zip(cards, sorted(dice.uniform(0, over_seconds) for _ in cards), strict=True):
        time.sleep(max(0.0, started + moment - time.monotonic()))
        nodes[card.node].set(int(card.gpu), used_bytes=AFTER_BYTES)
        taken[card] = time.monotonic()
    return taken


def measure(options: argparse.Namespace, folder: Path, told: Told) -> dict[Card, float]:
    """Start every side, fill the cards, wait until every side was told of all."""
    library = build(folder)
    nodes = {
        f"node-{number}": ScriptedGpus(folder / str(number), library, count=options.gpus)
        for number in range(options.nodes)
    }
    for gpus in nodes.values():
        for index in range(options.gpus):
            gpus.set(index, used_bytes=BEFORE_BYTES, utilization_percent=90)
    with contextlib.ExitStack() as stack:
        stack.enter_context(ours(folder, nodes, f"{told.url}/oomwatch"))
        stack.enter_context(alternative(nodes, f"{told.url}/aggressive", AGGRESSIVE))
        stack.enter_context(alternative(nodes, f"{told.url}/usual", USUAL))
        time.sleep(SETTLE_SECONDS)
        assert not any(told.of(side) for side in SIDES), "told of a card before it was full"
        taken = take_memory(nodes, options.over, random.Random(options.seed))
        told.wait_for(SIDES, len(taken), LATEST_SECONDS)
    return taken


def report(options: argparse.Namespace, taken: dict[Card, float], told: Told) -> None:
    print(
        f"{options.nodes} nodes of {options.gpus} GPUs, each full once within {options.over:g} s, seed {options.seed};"
    )
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[1]:.1f} over the last five minutes")
    print(f"{'memory taken -> webhook, s':30}{'median':>9}{'p90':>9}{'worst':>9}{'seen':>9}{'x oomwatch':>12}")
    first = None
    for side in SIDES:
        delays = sorted(at - taken[card] for card, at in told.of(side).items())
        if not delays:
            print(f"{side:30}{'told of nothing':>36}")
            continue
        median = statistics.median(delays)
        first = first or median
        p90 = delays[min(len(delays) - 1, int(len(delays) * 0.9))]
        seen = f"{len(delays)}/{len(taken)}"
        print(f"{side:30}{median:9.2f}{p90:9.2f}{delays[-1]:9.2f}{seen:>9}{median / first:12.1f}")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--gpus", type=int, default=4, help="of each node")
    parser.add_argument("--over", type=float, default=60.0, metavar="SECONDS", help="in which all cards fill up")
    parser.add_argument("--seed", type=int, default=1, help="of the moments at which they do")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, receiving() as told:
        taken = measure(options, Path(folder), told)
        report(options, taken, told)


if __name__ == "__main__":
    main()
