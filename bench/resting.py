"""What this machine makes of rest: a bare Python does a small piece of work after each second of rest, then at once.

    python -m bench.resting [--turns 30]

The work is always the same: some numbers are written out and put into a dict. Where the same work costs
several times as much after a second in which others had the processor's caches, so does a program that wakes up some
times a second, whatever it is: figures of machines in which that differs are not to be compared. CPU is of the one
thread, the waking up counted in.
"""

import time
from typing import NamedTuple

from bench._options import parser_of

REST_SECONDS = 1.0
NUMBERS = 1500  # a tenth of a millisecond and a half, about what one reading of the agent takes
TURNS_AT_ONCE = 200


class Resting(NamedTuple):
    """CPU of the work, in microseconds."""

    after_rest: float
    at_once: float

    def sentence(self) -> str:
        times = self.after_rest / self.at_once
        return (
            f"the same work in a bare Python: {self.after_rest:.0f} µs of CPU after a second of rest, "
            f"{self.at_once:.0f} at once ({times:.1f} times)"
        )


def work() -> dict[int, str]:
    return {number: str(number) for number in range(NUMBERS)}


def cpu_microseconds(turns: int, rest_seconds: float) -> float:
    """A turn, with what comes before it."""
    began = time.thread_time_ns()
    for _ in range(turns):
        if rest_seconds:
            time.sleep(rest_seconds)
        work()
    return (time.thread_time_ns() - began) / turns / 1000


def measure(turns: int) -> Resting:
    work()
    return Resting(cpu_microseconds(turns, REST_SECONDS), cpu_microseconds(TURNS_AT_ONCE, 0.0))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--turns", type=int, default=30, help="seconds of rest, with the work after each")
    print(measure(parser.parse_args().turns).sentence())


if __name__ == "__main__":
    main()
