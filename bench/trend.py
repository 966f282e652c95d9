"""How often the rule for torch's memory is wrong, and how early it is right: the shipped condition on made-up peaks.

    python -m bench.trend

One peak a step, as a share of the card. False alarms: runs without a trend, peaks normal around 93 %. Lead: leaks from
80 %, from the first step that the rule holds until the card is full. Steps, not seconds: nothing here is timed.
"""

import random
from collections.abc import Iterator
from statistics import median

from bench._options import parser_of

from oomwatch.core.conditions.rising import PEAKS, Rising
from oomwatch.units import Quantity

RULE = Rising(metric="torch_reserved_ratio", above=Quantity(0.9))
QUIET_STEPS_END = 2  # an episode ends after so many steps that do not hold
FALSE_STEPS, FALSE_SEEDS, LEAK_SEEDS = 4000, 5, 60


def holds(peaks: list[float]) -> bool:
    return RULE.holds_for(peaks[-PEAKS:])


def false_episodes(spread: float) -> int:
    episodes = 0
    for seed in range(FALSE_SEEDS):
        dice, peaks, quiet = random.Random(seed), list[float](), QUIET_STEPS_END
        for _ in range(FALSE_STEPS):
            peaks.append(min(1.0, dice.gauss(0.93, spread)))
            held = holds(peaks)
            episodes += held and quiet >= QUIET_STEPS_END
            quiet = 0 if held else quiet + 1
    return episodes


def leads(leak: float, spread: float) -> Iterator[int]:
    """Steps of warning of each run that was warned."""
    for seed in range(LEAK_SEEDS):
        dice, peaks, warned_at = random.Random(seed), list[float](), None
        while (peak := 0.80 + leak * len(peaks) + dice.gauss(0, spread)) < 1:
            peaks.append(peak)
            if warned_at is None and holds(peaks):
                warned_at = len(peaks)
        if warned_at is not None:
            yield len(peaks) - warned_at + 1


def main() -> None:
    parser_of(__doc__).parse_args()
    steps = FALSE_STEPS * FALSE_SEEDS
    for spread in (0.005, 0.02):
        count = false_episodes(spread)
        print(f"no trend, peaks +- {spread:.1%}: {count} false in {steps:,} steps, {1000 * count / steps:.2f} in 1,000")
    for leak, spread in ((0.003, 0.005), (0.003, 0.02), (0.01, 0.005), (0.03, 0.01)):
        found = list(leads(leak, spread))
        warned = f"warned {len(found)} of {LEAK_SEEDS}, median lead {median(found):g} steps"
        print(f"leak {leak:.1%} a step +- {spread:.1%}: {warned}")


if __name__ == "__main__":
    main()
