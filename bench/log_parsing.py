"""How fast logs are read, in megabytes a second of one core.

    python -m bench.log_parsing [MEGABYTES]

The mixed log is what a long run leaves on disk: for every recorded step (its step line, its memory and marker lines, as
verl 0.9.1 printed them) some 220 KB of what is no event. Of twelve such lines six are of printed samples, four are
redrawn progress bars and two are chatter of loggers; one in 120 is text of a model with words that the reader looks for
("memory", "reserved", "Step 2:"). The configuration is printed once. Dense: the same with nothing between.

Both are read from a file by the agent's own log source, in shares of 4 MB as it does once a second; the process' memory
is looked at on the way. `wc -l` and a `grep -c` of the same files stand beside it.
"""

import itertools
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from bench._options import parser_of

from oomwatch_agent.logsource import LogSource

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests" / "fixtures" / "verl-0.9.1-healthy" / "driver.log"
MEGABYTES = 200
QUIET_BYTES_A_STEP = 220_000

SENTENCES = (
    "First we count the apples in the room, then we double what is left over: 3 * 4 = 12, so the total is 12.",
    "Let $x$ be the number of students. Then $2x + 7 = 31$ and therefore $x = 12$. The answer is \\boxed{12}.",
    "Step 2: we add the second row of the table to the first one, and see that the remainder cannot be negative.",
    "def solve(n):\n    return sum(i for i in range(n) if i % 3 == 0 or i % 5 == 0)  # 233168",
    "Wait, that is not right. Let me re-check the second case, where both roots are negative: -3 and -7.",
    "**Answer:** the train leaves at 14:05 and arrives 2 hours 35 minutes later, at 16:40.",
)
TRAP = "Step 2: her memory of the trip is good; she reserved 20 seats, and 137 people came. Zoom in on it."
CHATTER = (
    "INFO 11-29 13:52:11 [loggers.py:118] Engine 000: Avg generation throughput: 0.0 tokens/s, Running: 0 reqs",
    "INFO:2026-11-29 13:52:11,102:Loading checkpoint shards took 3.1 seconds",
    "/opt/lib/python3.11/site-packages/torch/utils/checkpoint.py:87: UserWarning: None of the inputs require a grad",
    "list(reward_extra_infos_dict.keys())=['acc', 'score']",
)


def main() -> None:
    """Print a line for each log."""
    parser = parser_of(__doc__)
    parser.add_argument("megabytes", type=int, nargs="?", default=MEGABYTES)
    size = parser.parse_args().megabytes * 1_000_000
    recorded = RECORDED.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        for name, pieces in (("mixed", mixed(recorded, QUIET_BYTES_A_STEP)), ("dense", mixed(recorded, 0))):
            path = Path(folder) / f"{name}.log"
            _write(path, pieces, size if name == "mixed" else size // 10)
            print(f"{name}: {_report(path)}", flush=True)


def mixed(recorded: bytes, quiet_bytes: int) -> Iterator[bytes]:
    """The recorded log over and over, with so much between its steps."""
    lines = recorded.splitlines(keepends=True)
    begin = next(at for at, line in enumerate(lines) if b"memory allocated" in line)
    yield b"".join(lines[:begin])  # the configuration
    quiet = _quiet()
    while True:
        for line in lines[begin:]:
            yield line
            if b"step:" in line:
                yield b"".join(itertools.islice(quiet, quiet_bytes // 120))


def _quiet() -> Iterator[bytes]:
    """Lines of some 100 bytes that are no event, in the mix of the module's head."""
    prefix = b"\x1b[36m(TaskRunner pid=25521)\x1b[0m "
    for number in itertools.count():
        kind = number % 12
        if kind < 6:
            sample = number // 12 % 10
            head = b"[prompt] user\n" + prefix if kind == 0 and sample == 0 else b""
            tail = b"\n" + prefix + b"[score] 1.0" if kind == 5 and sample == 9 else b""
            text = TRAP if kind == 3 and sample == 5 else SENTENCES[kind]
            yield prefix + head + text.encode() + tail + b"\n"
        elif kind < 10:
            done = number % 1000
            bar = f"{done // 10}%|{'█' * (done // 40):<25}| {done}/1000 [31:08<5:12:40, 95.31s/it]"
            yield f"Training Progress:  {bar}\r".encode()
        else:
            yield prefix + CHATTER[number // 12 % len(CHATTER)].encode() + b"\n"


def _write(path: Path, pieces: Iterator[bytes], size: int) -> None:
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(next(pieces))


def _report(path: Path) -> str:
    megabytes = path.stat().st_size / 1e6
    seconds, events, before, most = _read(path)
    others = ", ".join(
        f"{' '.join(command)} {megabytes / _timed([*command, str(path)]):.0f} MB/s"
        for command in (["wc", "-l"], ["grep", "-c", "out of memory"])
    )
    return (
        f"{megabytes:.0f} MB, {events} events, {megabytes / seconds:.0f} MB/s of CPU time; {others}; "
        f"resident {before / 2**20:.1f} MiB before and {most / 2**20:.1f} MiB at most"
    )


def _read(path: Path) -> tuple[float, int, int, int]:
    """CPU seconds, events, and resident bytes before and at most."""
    process = psutil.Process()
    before = most = process.memory_info().rss
    source = LogSource(str(path), "start", None)
    source.open()
    events, begun = 0, time.process_time()
    while True:
        reading = source.read(slow=False)
        events += len(reading.found)
        most = max(most, process.memory_info().rss)
        if not reading.found and not reading.facts:
            break
    taken = time.process_time() - begun
    source.close()
    return taken, events, before, most


def _timed(command: list[str]) -> float:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)  # once, so that the file is in the page cache
    begun = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
