"""How often the kinds of rule that look at steps are wrong, how late they are right, and what a step costs them.

    python -m bench.kinds

Made-up series of steps, one number a step, seeded. Healthy: noise, noise with a memory, packed cards, series that rise
and level off. Failing: leaks, leaps, lengths that grow. An episode ends after ten quiet steps, as in the engine.
"""

import random
import timeit
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

from bench._options import parser_of

from oomwatch.core.conditions.fragmentation import Fragmentation
from oomwatch.core.conditions.imbalance import Imbalance
from oomwatch.core.conditions.lengths import Lengths
from oomwatch.core.conditions.residue import Residue
from oomwatch.core.conditions.retries import Retries
from oomwatch.core.conditions.worst_case import FURTHEST, WINDOW_STEPS, WorstCase
from oomwatch.core.held import QUIET_STEPS
from oomwatch.core.relation import Point, slope_through

GIB = 2**30
CARD = 80 * GIB
STEPS, SEEDS = 300, 40
CAP_TOKENS = 8192.0

Series = list[float]
Judge = Callable[[Series], bool]


def noise(dice: random.Random, spread: float, memory: float) -> Iterator[float]:
    """Normal noise of that spread, of which so much is left in the next step."""
    value, fresh = 0.0, spread * (1 - memory**2) ** 0.5
    while True:
        value = memory * value + dice.gauss(0, fresh)
        yield value


def flat(seed: int, level: float, spread: float, memory: float = 0.0) -> Series:
    source = noise(random.Random(seed), spread, memory)
    return [max(0.0, level + next(source)) for _ in range(STEPS)]


def levelling(seed: int, level: float, rise: float, pace: float, spread: float) -> Series:
    """Rises by so much, ever more slowly."""
    source = noise(random.Random(seed), spread, 0.0)
    return [level + rise * (1 - 2 ** (-step / pace)) + next(source) for step in range(STEPS)]


def episodes(series: Series, judge: Judge) -> int:
    count, quiet = 0, QUIET_STEPS
    for end in range(1, len(series) + 1):
        held = judge(series[:end])
        count += held and quiet >= QUIET_STEPS
        quiet = 0 if held else quiet + 1
    return count


def delay(series: Series, onset: int, judge: Judge) -> int | None:
    return next((end - onset for end in range(onset, len(series) + 1) if judge(series[:end])), None)


def report_false(name: str, of_seed: Callable[[int], Series], judge: Judge) -> None:
    count = sum(episodes(of_seed(seed), judge) for seed in range(SEEDS))
    steps = STEPS * SEEDS
    print(f"  {name}: {count} false in {steps:,} steps, {1000 * count / steps:.3f} in 1,000")


def report_delay(name: str, of_seed: Callable[[int], Series], onset: int, judge: Judge) -> None:
    found = [delay(of_seed(seed), onset, judge) for seed in range(SEEDS)]
    told = [steps for steps in found if steps is not None]
    late = f"median {median(told):g}, at most {max(told)} steps after it began" if told else "never"
    print(f"  {name}: {len(told)} of {SEEDS}, {late}")


# ---------------------------------------------------------------------------------------------------- the kinds


def residues() -> None:
    rule = Residue()

    def judge(series: Series) -> bool:
        """Of a card that has 16 GiB left at the first step's peak."""
        room = max(0.0, 16 * GIB - (max(series[-10:]) - series[0]))
        return rule.holds_for(series[-60:], room) is not None

    def leaky(seed: int, a_step: float) -> Series:
        return [value + a_step * max(0, step - 60) for step, value in enumerate(flat(seed, 8 * GIB, 0.2 * GIB, 0.5))]

    def leapt(seed: int, by: float) -> Series:
        return [value + by * (step >= 60) for step, value in enumerate(flat(seed, 8 * GIB, 0.2 * GIB, 0.5))]

    print("residue, 8 GiB")
    report_false("noise of 0.3 GiB", lambda seed: flat(seed, 8 * GIB, 0.3 * GIB), judge)
    report_false("noise of 0.5 GiB with memory .8", lambda seed: flat(seed, 8 * GIB, 0.5 * GIB, 0.8), judge)
    report_false("up by 2 GiB and level", lambda seed: levelling(seed, 8 * GIB, 2 * GIB, 10, 0.1 * GIB), judge)
    report_false("large, 40 GiB, noise of 1 GiB", lambda seed: flat(seed, 40 * GIB, GIB, 0.5), judge)
    report_delay("0.1 GiB more each step", lambda seed: leaky(seed, 0.1 * GIB), 60, judge)
    report_delay("0.5 GiB more each step", lambda seed: leaky(seed, 0.5 * GIB), 60, judge)
    report_delay("up by 4.5 GiB", lambda seed: leapt(seed, 4.5 * GIB), 60, judge)
    report_delay("up by 7.5 GiB", lambda seed: leapt(seed, 7.5 * GIB), 60, judge)


def fragmented() -> None:
    rule = Fragmentation()

    def judge(series: Series) -> bool:
        return rule.holds_for(series[-60:], [0.9 * CARD], CARD) is not None

    print("fragmentation")
    report_false("slack 20 %, noise of 2 %", lambda seed: flat(seed, 0.2 * CARD, 0.02 * CARD), judge)
    report_false(
        "slack 20 %, noise of 2 % with memory .8", lambda seed: flat(seed, 0.2 * CARD, 0.02 * CARD, 0.8), judge
    )
    report_false("up by 10 % and level", lambda seed: levelling(seed, 0.1 * CARD, 0.1 * CARD, 5, 0.01 * CARD), judge)
    report_delay(
        "0.3 % more each step, from 10 %",
        lambda seed: [v + 0.003 * CARD * i for i, v in enumerate(flat(seed, 0.10 * CARD, 0.01 * CARD))],
        17,
        judge,
    )


def lengths() -> None:
    rule = Lengths()

    def judge(series: Series) -> bool:
        return rule.holds_for(series[-60:], [])[0] is not None

    def clipped(series: Series) -> bool:
        return rule.holds_for([], series[-60:])[1] is not None

    print("lengths, 1,000 tokens")
    for memory in (0.0, 0.5, 0.8):
        report_false(f"noise of 5 % with memory {memory}", partial(wandering, memory), judge)
    report_false("clipped 4 %, noise of 2 %", lambda seed: flat(seed, 0.04, 0.02, 0.5), clipped)
    for pace in (5, 10, 20):
        report_delay(f"{pace} tokens more each step", partial(growing, pace), 60, judge)


def wandering(memory: float, seed: int) -> Series:
    return flat(seed, 1000, 50, memory)


def growing(tokens_per_step: float, seed: int) -> Series:
    return [one + tokens_per_step * max(0, step - 60) for step, one in enumerate(flat(seed, 1000, 50, 0.5))]


def is_too_long(points: list[Point], *, is_held: bool = False) -> bool:
    slope = slope_through(points)
    if slope is None:
        return False
    furthest = min(CAP_TOKENS, FURTHEST * max(tokens for tokens, _ in points))
    return WorstCase().holds_for(points, slope, furthest, CARD, is_held=is_held) is not None


def worst_case() -> None:
    print("worst_case")
    for at_cap, spread, mean, growth in (
        (0.985, 0.003, 3000, 0), (0.985, 0.01, 3000, 0), (0.985, 0.01, 1000, 10), (0.93, 0.02, 2000, 0),
        (0.93, 0.03, 1000, 20), (1.1, 0.01, 3000, 0), (1.1, 0.02, 1000, 5), (1.3, 0.01, 2000, 0),
    ):  # fmt: skip
        false, first = 0, list[int]()
        for seed in range(SEEDS):
            dice = random.Random(seed)
            tokens = [min(CAP_TOKENS, max(50.0, dice.gauss(mean + growth * step, 0.2 * mean))) for step in range(STEPS)]
            slope = (at_cap - 0.4) * CARD / CAP_TOKENS
            points = [(one, 0.4 * CARD + slope * one + dice.gauss(0, spread) * CARD) for one in tokens]
            quiet, seen = QUIET_STEPS, False
            for end in range(1, len(points) + 1):
                held = is_too_long(points[max(0, end - WINDOW_STEPS) : end], is_held=quiet < QUIET_STEPS)
                false += held and quiet >= QUIET_STEPS
                quiet = 0 if held else quiet + 1
                if held and not seen:
                    seen = True
                    first.append(end)
        shown = f"first at step {median(first):g}" if first else "never"
        print(
            f"  {at_cap:.1%} at the cap +- {spread:.1%}, lengths {mean} +{growth}: "
            f"{1000 * false / STEPS / SEEDS:.3f} episodes in 1,000, {len(first)} of {SEEDS} runs, {shown}"
        )


def imbalance() -> None:
    rule = Imbalance()
    print("imbalance, 8 GPUs")
    for spread in (0.02, 0.05):
        count = 0
        for seed in range(SEEDS):
            dice = random.Random(seed)
            rows = [[dice.gauss(0.85, spread) * CARD for _ in range(8)] for _ in range(STEPS)]
            count += sum(sticking_out(rule, rows, gpu) for gpu in range(2))
        print(f"  ranks differ by {spread:.0%}: {1000 * count / STEPS / SEEDS / 2:.3f} false in 1,000 steps of a GPU")


def sticking_out(rule: Imbalance, rows: list[Series], gpu: int) -> int:
    def judge(series: Series) -> bool:
        last = rows[max(0, len(series) - rule.steps) : len(series)]
        return rule.holds_for([row[gpu] for row in last], [row[:gpu] + row[gpu + 1 :] for row in last], CARD)

    return episodes([row[gpu] for row in rows], judge)


def retries() -> None:
    rule = Retries()

    def rare(seed: int) -> Series:
        dice = random.Random(seed)
        return [float(dice.random() < 0.002) for _ in range(STEPS)]

    def judge(series: Series) -> bool:
        return rule.holds_for([int(one) for one in series[-3:]], [], CARD)

    print("retries")
    report_false("one in 500 steps, on a full card", rare, judge)


def cost() -> None:
    dice = random.Random(1)
    rising = [8 * GIB + dice.gauss(i * 0.02, 0.2) * GIB for i in range(40)]
    level = [8 * GIB + dice.gauss(0, 0.2) * GIB for i in range(40)]
    points = [(dice.gauss(2000, 400), dice.gauss(0.8, 0.01) * CARD) for _ in range(33)]
    over = [(x, 0.4 * CARD + x * 0.7 * CARD / CAP_TOKENS) for x, _ in points]
    cases: list[tuple[str, Callable[[], object]]] = [
        ("residue, level", lambda: Residue().holds_for(level, 10 * GIB)),
        ("residue, rising", lambda: Residue().holds_for(rising, 10 * GIB)),
        ("fragmentation, level", lambda: Fragmentation().holds_for([20 * one for one in level], [CARD], 8 * CARD)),
        ("lengths, level", lambda: Lengths().holds_for(level, level)),
        ("worst_case, fits", lambda: is_too_long(points)),
        ("worst_case, does not", lambda: is_too_long(over)),
    ]
    for name, work in cases:
        seconds = min(timeit.repeat(work, number=50, repeat=5)) / 50
        print(f"  {name}: {seconds * 1e6:.0f} us a step")


def main() -> None:
    parser_of(__doc__).parse_args()
    for part in (residues, fragmented, lengths, worst_case, imbalance, retries, cost):
        part()


if __name__ == "__main__":
    main()
