"""The largest settings that still fit: micro batches, token limits, length, and the engine's share."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from oomwatch import wire
from oomwatch.plan.batches import Batches, batches_of
from oomwatch.plan.cards import Card
from oomwatch.plan.memory.estimate import Estimate
from oomwatch.plan.memory.whole import estimate_of
from oomwatch.plan.reader import Reader, reader_of
from oomwatch.plan.settings import ROLLOUT, Config
from oomwatch.plan.shape import ModelShape

_TOKENS_MOST = 2**20
_TOKEN_STEP = 256
_SHARES = tuple(round(0.05 * count, 2) for count in range(1, 20))  # 0.05 to 0.95
_SHARE_KEY, _LENGTH_KEY = f"{ROLLOUT}.gpu_memory_utilization", "data.max_response_length"


class Largest(Struct, frozen=True, kw_only=True):
    """Of one setting, all others as they are."""

    key: str  # verl's
    phases: tuple[str, ...]  # that it sizes
    now: float | None  # None: not told
    fits: float | None  # the largest that fits with room; None: none does
    at_most: float | None  # the largest that is expected to fit, though it may turn out tight


class _Question(NamedTuple):
    key: str
    choices: Sequence[float]  # ascending


def largest_that_fits(
    config: Config,
    shape: ModelShape,
    card: Card | int,
    *,
    version: str | None = None,
    critic_shape: ModelShape | None = None,
    mean_length_tokens: float | None = None,
) -> tuple[Largest, ...]:
    """Of every setting that sizes a phase, in the order of a step. Arguments as of estimate_of.

    A setting sizes those phases whose estimate it moves: this is tried, so what verl does not read is never offered.
    The length may size none, where batches are cut by tokens: then it goes as far as these hold a sequence.
    """

    def estimate(changed: Config) -> Estimate:
        return estimate_of(
            changed,
            shape,
            card,
            version=version,
            critic_shape=critic_shape,
            mean_length_tokens=mean_length_tokens,
        )

    told = reader_of(config, version)
    questions = _questions(told, batches_of(config, version), estimate(config))
    answers = (_answer(config, told, question, estimate) for question in questions)
    return tuple(answer for answer in answers if answer.phases or answer.key == _LENGTH_KEY)


def _questions(told: Reader, batches: Batches, now: Estimate) -> Iterator[_Question]:
    """Of all settings that may size a phase."""
    if now.phase("rollout") is not None:
        yield _Question(_SHARE_KEY, _with(_SHARES, told.value(_SHARE_KEY)))
    for phase in batches.phases:
        if now.phase(phase.phase) is not None:
            tokens = range(_TOKEN_STEP, _TOKENS_MOST + 1, _TOKEN_STEP)
            choices = tokens if phase.is_dynamic else _divisors(phase.sequences_per_gpu or 1)
            yield _Question(phase.limit_key, _with(choices, told.value(phase.limit_key)))
    if "longest_batch" in now.assumed:  # else the cap sizes nothing
        lengths = range(_TOKEN_STEP, _longest(told, batches) + 1, _TOKEN_STEP)
        yield _Question(_LENGTH_KEY, _with(lengths, told.value(_LENGTH_KEY)))


def _with(choices: Sequence[float], now: wire.ConfigValue | None) -> Sequence[float]:
    """The choices with what is set now among them: a value that fits is never passed over."""
    if not isinstance(now, int | float) or isinstance(now, bool) or now in choices or not choices:
        return choices
    return sorted((*choices, now)) if 0 < now < choices[-1] else choices


def _longest(told: Reader, batches: Batches) -> int:
    """The longest response that is worth asking for: verl stops where a sequence is longer than a dynamic batch."""
    dynamic = (phase for phase in batches.phases if phase.is_dynamic)
    caps = [phase.tokens_per_micro_batch * phase.shares for phase in dynamic if phase.tokens_per_micro_batch]
    return min(caps, default=_TOKENS_MOST) - told.positive("data.max_prompt_length", otherwise=0)


def _answer(config: Config, told: Reader, question: _Question, estimate: Callable[[Config], Estimate]) -> Largest:
    @functools.cache  # both bounds are sought among the same choices
    def tried(value: float) -> Estimate:
        return estimate({**config, question.key: value})

    phases = _moved(tried, question.choices)

    def is_at_least(verdicts: tuple[str, ...]) -> Callable[[float], bool]:
        def is_so(value: float) -> bool:
            found = tried(value)
            looked_at = (found.phase(name) for name in phases)
            return all(phase is None or phase.verdict in verdicts for phase in looked_at)

        return is_so

    now = told.value(question.key)
    return Largest(
        key=question.key,
        phases=phases,
        now=float(now) if isinstance(now, int | float) and not isinstance(now, bool) else None,
        fits=_last(question.choices, is_at_least(("fits",))),
        at_most=_last(question.choices, is_at_least(("fits", "tight"))),
    )


def _moved(tried: Callable[[float], Estimate], choices: Sequence[float]) -> tuple[str, ...]:
    """The phases that are not the same with the smallest choice and with the largest."""
    if not choices:
        return ()
    ends = zip(tried(choices[0]).phases, tried(choices[-1]).phases, strict=True)
    return tuple(least.phase for least, most in ends if least != most)


def _last(choices: Sequence[float], holds: Callable[[float], bool]) -> float | None:
    """The last of ascending choices that holds, where all up to some one do.

    An engine's share may also be too small: the first choices that do not hold are passed over.
    """
    first = next((at for at in _coarse(len(choices)) if holds(choices[at])), None)
    if first is None:
        return None
    low, high = first, len(choices)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(choices[middle]) else (low, middle)
    return choices[low]


def _coarse(count: int) -> Iterator[int]:
    """Places to look for a first one that holds: all of few, of many the ends of ever longer stretches."""
    at, step = 0, 1
    while at < count:
        yield at
        at += step
        step *= 1 if count < 100 else 2  # noqa: PLR2004 - few enough to try each


def _divisors(sequences: int) -> tuple[int, ...]:
    """Micro batches into which the sequences of a GPU can be cut."""
    return tuple(size for size in range(1, min(sequences, 4096) + 1) if sequences % size == 0)
