"""A training run that writes its logs while an agent follows: the recorded leak run, and how it goes on."""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

LEAK = Path(__file__).resolve().parents[1] / "fixtures/verl-0.9.1-leak"
STEP_LINE = re.compile(r"step:(\d+) - ")
RUN = "demo/qwen7b_grpo"


def steps_of(lines: list[str]) -> Iterator[list[str]]:
    """The lines of a log, cut after each step line; the last part is what follows the last one."""
    number = 0

    def part(line: str) -> int:
        nonlocal number
        mine = number
        number += bool(STEP_LINE.search(line))
        return mine

    yield from (list(group) for _, group in groupby(lines, key=part))


class Training:
    """Writes driver.log, and the files of Ray's session folder beside it, as the recorded run did."""

    def __init__(self, folder: Path) -> None:
        self.driver_log = folder / "driver.log"
        self.session = folder / "ray" / "session_2026-11-29_13-50-26_000000_25000"
        self._logs = self.session / "logs"
        self._logs.mkdir(parents=True)
        self.driver_log.touch()
        self._driver = list(steps_of(_lines(LEAK / "driver.log")))
        self._workers = {path.name: list(steps_of(_lines(path))) for path in (LEAK / "ray-session-logs").iterdir()}
        self._last_step_line = next(line for line in reversed(self._driver[-2]) if STEP_LINE.search(line))

    @property
    def steps(self) -> int:
        return len(self._driver) - 1

    def do_step(self, number: int) -> None:
        """Everything that the run wrote up to and with this step's line (from 1)."""
        self._append(self.driver_log, self._driver[number - 1])
        self._append(self._logs / self._worker("25520.err"), self._memory_lines().get(number, []))
        self._append(self._logs / self._worker("25521.out"), self._workers[self._worker("25521.out")][number - 1])

    def run_out_of_memory(self) -> None:
        """The last lines of the driver's log; the error is in the driver process' own file as well."""
        self._append(self.driver_log, self._driver[-1])
        self._append(self._logs / self._worker("25521.err"), self._workers[self._worker("25521.err")][0])

    def go_on(self, number: int, *, rollout_seconds: float = 30.0, reserved_gib: float = 60.0) -> None:
        """A further step in the format of the recorded ones."""
        line = STEP_LINE.sub(f"step:{number} - ", self._last_step_line)
        line = re.sub(r"timing_s/gen:[\d.]+", f"timing_s/gen:{rollout_seconds}", line)
        line = re.sub(r"max_memory_reserved_gb:[\d.]+", f"max_memory_reserved_gb:{reserved_gib}", line)
        self._append(self.driver_log, [line])

    def _memory_lines(self) -> dict[int, list[str]]:
        """The rank's own file has no step lines: seven memory lines make a step."""
        lines = [line for part in self._workers[self._worker("25520.err")] for line in part]
        head, rest = lines[:2], lines[2:]
        steps = {index + 1: rest[index * 7 : index * 7 + 7] for index in range((len(rest) + 6) // 7)}
        return steps | {1: head + steps[1]}

    def _worker(self, ending: str) -> str:
        """Name of the file of a process: its id and stream end it."""
        return next(name for name in self._workers if name.endswith(ending))

    @staticmethod
    def _append(path: Path, lines: list[str]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(lines)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True)
