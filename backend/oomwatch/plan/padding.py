"""The filling of a step: since 0.9 verl's trainer adds sequences of nothing but padding until a batch can be dealt."""

from collections.abc import Sequence
from math import lcm

from oomwatch.plan.figure import Figure
from oomwatch.plan.groups import groups_of
from oomwatch.plan.reader import Reader
from oomwatch.plan.settings import ROLLOUT


def pads(here: Reader) -> bool:
    """Whether the trainer is one that fills a batch up."""
    return here.since("0.9.0") and here.is_on("trainer.use_v1")


def multiple_of(here: Reader, sections: Sequence[str]) -> int:
    """What a step's sequences are filled up to a multiple of: all ranks, and whole mini batches of each model.

    `sections` are the models that learn; what is not known counts as 1.
    """
    n = here.number(f"{ROLLOUT}.n") or 1
    minis = (here.number(f"{section}.ppo_mini_batch_size") or 1 for section in sections)
    return lcm(groups_of(here).ranks.value or 1, *(mini * n for mini in minis if mini > 0))


def filled(here: Reader, sections: Sequence[str], sequences: Figure) -> Figure:
    """A step's sequences with those that are added; the same where none are, or their number is not known."""
    if not pads(here) or not sequences.value:
        return sequences
    multiple = multiple_of(here, sections)
    times = -(-sequences.value // multiple)
    if times * multiple == sequences.value:
        return sequences
    return Figure(times * multiple, f"{times} × {multiple}", sequences.assumed)
