"""Where the time goes between a memory step on a card and the webhook, leg by leg.

    python -m bench.legs [--cards 24]

The real agent and server run as processes of their own on the cards of the stand-in for NVIDIA's library (tests/nvml);
each notes at the seams below when something is called and when that is done. The rule has no hold time, group_wait is
as shipped. All figures are milliseconds.
"""

import bisect
import functools
import inspect
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench._options import parser_of
from bench.detection.receiver import Card, Told, receiving
from tests.acceptance.programs import Program, ending, until
from tests.nvml.standin import GIB, ScriptedGpus, build
from tests.ports import free_port

BEFORE_BYTES, AFTER_BYTES = 40 * GIB, 76 * GIB  # of 80
NODE = "node-1"
SETTLE_SECONDS = 5.0  # past the agent's first slow read
CALM_SECONDS = 0.5  # what came of the step before is over
LATEST_SECONDS = 10.0
RULES = """
notify:
  group_interval: 0s
  channels:
    - {{kind: webhook, name: bench, url: "{url}", send_resolved: false}}
rules:
  - alert: full
    when: {{kind: threshold, metric: gpu_used_ratio, above: 85%}}
    summary: "GPU {{gpu}} of {{node}} is full"
"""


class Leg(NamedTuple):
    """From one moment to another, as the programs note them, or as this one does: `step`, `arrived`."""

    what: str
    start: str
    end: str


LEGS = (
    Leg("wait for the next look at the card", "step", "collect begins"),
    Leg("read every source", "collect begins", "collect ends"),
    Leg("encode it", "collect ends", "send begins"),
    Leg("send, decode and judge it", "send begins", "announce begins"),
    Leg("wait for the thread that writes", "announce begins", "append begins"),
    Leg("store the transition", "append begins", "append ends"),
    Leg("back to the loop; show it, offer it", "append ends", "offer ends"),
    Leg("group_wait, and make the message", "offer ends", "post begins"),
    Leg("post it", "post begins", "arrived"),
    Leg("all but the first", "collect begins", "arrived"),
    Leg("all", "step", "arrived"),
)


def noted(owner: object, name: str, leg: str) -> None:
    """From now on this process notes when `owner.name` begins and ends."""
    real: Callable[..., Any] = getattr(owner, name)
    log = Path(os.environ["OOMWATCH_BENCH_LEGS"])

    def note(moment: str) -> None:
        at = time.monotonic()
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{at:.6f} {leg} {moment}\n")

    @functools.wraps(real)
    def call(*args: object, **options: object) -> object:
        note("begins")
        result = real(*args, **options)
        note("ends")
        return result

    @functools.wraps(real)
    async def await_call(*args: object, **options: object) -> object:
        note("begins")
        result = await real(*args, **options)
        note("ends")
        return result

    setattr(owner, name, await_call if inspect.iscoroutinefunction(real) else call)


def be_agent(arguments: list[str]) -> int:
    from oomwatch_agent.__main__ import main  # noqa: PLC0415 - only one of the two programs in a process
    from oomwatch_agent.link import Link  # noqa: PLC0415
    from oomwatch_agent.sampler import Sampler  # noqa: PLC0415

    noted(Sampler, "collect_here", "collect")  # by the thread whose look saw it
    noted(Link, "post", "send")
    noted(Link, "send", "send")  # where `post` could not
    return main(arguments)


def be_server(arguments: list[str]) -> int:
    from oomwatch.__main__ import main  # noqa: PLC0415
    from oomwatch.notify import http  # noqa: PLC0415
    from oomwatch.service.journal import Journal  # noqa: PLC0415
    from oomwatch.store.store import Store  # noqa: PLC0415
    from oomwatch.web.herald import Herald  # noqa: PLC0415

    for owner, name, leg in (
        (Journal, "announce", "announce"),
        (Store, "append", "append"),
        (Herald, "offer", "offer"),
        (http, "post", "post"),
    ):
        noted(owner, name, leg)
    return main(arguments)


def take_steps(gpus: ScriptedGpus, told: Told) -> Iterator[tuple[float, float]]:
    """Fill one card after the other; when each was full and when the webhook said so."""
    dice = random.Random(1)
    for index in range(len(gpus)):
        time.sleep(CALM_SECONDS + dice.random())
        gpus.set(index, used_bytes=AFTER_BYTES)
        taken_at = time.monotonic()
        if told.wait_for(["bench"], index + 1, LATEST_SECONDS):
            yield taken_at, told.of("bench")[Card(NODE, str(index))]


def moments_of(notes: dict[str, list[float]], taken_at: float, arrived_at: float) -> dict[str, float]:
    """When each moment of one step was: from the last `collect` that can have seen it, the first of each."""
    found = {"step": taken_at, "arrived": arrived_at}
    announced_at = _first(notes["announce begins"], taken_at)
    found["collect begins"] = notes["collect begins"][bisect.bisect(notes["collect begins"], announced_at) - 1]
    at = found["collect begins"]
    for moment in dict.fromkeys(leg.end for leg in LEGS if leg.end not in found):
        found[moment] = at = _first(notes[moment], at)
    return found


def _first(moments: list[float], after: float) -> float:
    return moments[bisect.bisect_left(moments, after)]


def measure(cards: int, folder: Path) -> list[dict[str, float]]:
    """The moments of every step."""
    gpus = ScriptedGpus(folder / "cards", build(folder), count=cards)
    for index in range(cards):
        gpus.set(index, used_bytes=BEFORE_BYTES)
    port, notes = free_port(), folder / "notes"
    environ = {"OOMWATCH_BENCH_LEGS": str(notes), "PYTHONPATH": os.pathsep.join(sys.path)}
    with receiving() as told:
        (folder / "alerts.yaml").write_text(RULES.format(url=f"{told.url}/bench"), encoding="utf-8")
        url = f"127.0.0.1:{port}"
        serve = ["serve", "--listen", url, "--db", str(folder / "oomwatch.db"), "--rules", str(folder / "alerts.yaml")]
        server = Program("server", ["-m", "bench.legs", "--be", "server", *serve], folder, environ)
        with ending(server):
            until("the server", lambda: "dashboard:" in server.output)
            watch = ["--server", f"http://{url}", "--node", NODE]
            agent = Program(
                "agent", ["-m", "bench.legs", "--be", "agent", *watch], folder, {**environ, **gpus.environment}
            )
            with ending(agent):
                until("the agent", lambda: "connected to" in agent.output)
                time.sleep(SETTLE_SECONDS)
                steps = list(take_steps(gpus, told))
    return [moments_of(read(notes), *step) for step in steps]


def read(notes: Path) -> dict[str, list[float]]:
    """The times of each moment, in order."""
    found: dict[str, list[float]] = {}
    for line in notes.read_text(encoding="utf-8").splitlines():
        at, _, moment = line.partition(" ")
        found.setdefault(moment, []).append(float(at))
    return {moment: sorted(times) for moment, times in found.items()}


def main() -> int:
    if sys.argv[1:2] == ["--be"]:
        return {"agent": be_agent, "server": be_server}[sys.argv[2]](sys.argv[3:])
    parser = parser_of(__doc__)
    parser.add_argument("--cards", type=int, default=24, help="each fills up once")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="oomwatch-bench-") as folder:
        found = measure(options.cards, Path(folder))
    print(f"{len(found)} of {options.cards} steps were told\n\n{'leg, ms':38}  median     p90   worst")
    for leg in LEGS:
        times = sorted(1000 * (moments[leg.end] - moments[leg.start]) for moments in found)
        p90 = times[int(0.9 * (len(times) - 1))]
        print(f"{leg.what:38} {statistics.median(times):7.1f} {p90:7.1f} {times[-1]:7.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
