"""How fast logs are read: `python bench/log_parsing.py [FILE ...]`, megabytes a second of one core.

Without files: the recorded driver's log as it is (dense: 14 steps and 98 memory lines in 130 KB), and the same with the
samples that verl prints for every step between, which is what most of a real log consists of.
"""

import sys
import tempfile
import time
from pathlib import Path

from oomwatch_agent.logs.reader import LineReader
from oomwatch_agent.logsource import LogSource

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests" / "fixtures" / "verl-0.9.1-healthy" / "driver.log"
SENTENCE = b"(TaskRunner pid=7) First we count the apples in the room, then we double what is left over and zoom in.\n"
ROUNDS = 3


def main() -> None:
    """Print a line for each log: reader alone, and with the tail around it."""
    given = [Path(name).read_bytes() for name in sys.argv[1:]]
    recorded = RECORDED.read_bytes()
    logs = given or [recorded * 20, _with_samples(recorded) * 4]
    names = sys.argv[1:] or ["recorded driver.log", "with printed samples"]
    for name, content in zip(names, logs, strict=True):
        lines = content.replace(b"\r", b"\n").decode("utf-8", "replace").split("\n")
        reader = min(_read_lines(lines) for _ in range(ROUNDS))
        source = min(_read_file(content) for _ in range(ROUNDS))
        size = len(content) / 1e6
        print(f"{name}: {size:.1f} MB, reader {size / reader:.0f} MB/s, tail and reader {size / source:.0f} MB/s")


def _with_samples(log: bytes) -> bytes:
    """Sixty sentences of a model after every step line: some 6 KB, as much as verl prints of one sample."""
    sample = b"(TaskRunner pid=7) [prompt] user\n" + SENTENCE * 60 + b"(TaskRunner pid=7) [score] 1.0\n"
    lines = log.splitlines(keepends=True)
    return b"".join(line + sample * 10 if b"step:" in line else line for line in lines)


def _read_lines(lines: list[str]) -> float:
    reader = LineReader()
    begun = time.perf_counter()
    for number, line in enumerate(lines, 1):
        reader.feed(line, number)
    return time.perf_counter() - begun


def _read_file(content: bytes) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "driver.log"
        path.write_bytes(content)
        source = LogSource(str(path), "start", None)
        begun = time.perf_counter()
        source.open()
        while True:
            reading = source.read(slow=False)
            if not reading.found and not reading.facts:
                break
        taken = time.perf_counter() - begun
        source.close()
        return taken


if __name__ == "__main__":
    main()
