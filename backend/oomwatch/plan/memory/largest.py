"""The largest settings that still fit: micro batches, token limits, length, and the engine's share."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from oomwatch.plan.batches import Batches, batches_of
from oomwatch.plan.cards import Card
from oomwatch.plan.memory.estimate import Estimate
from oomwatch.plan.memory.told import Told, told_by
from oomwatch.plan.memory.whole import estimate_of
from oomwatch.plan.phasekeys import PHASES
from oomwatch.plan.settings import ROLLOUT, Config
from oomwatch.plan.shape import ModelShape

_TOKENS_MOST = 2**20
_TOKEN_STEP = 256
_SHARES = tuple(round(0.05 * count, 2) for count in range(1, 20))  # 0.05 to 0.95
_SHARE_KEY, _LENGTH_KEY = f"{ROLLOUT}.gpu_memory_utilization", "data.max_response_length"
# A setting of one phase may be told by that of another: its own is what is offered.
_LIMITS = ("old_log_prob", "ref", "values", "update_critic", "update_actor")


class Largest(Struct, frozen=True, kw_only=True):
    """Of one setting, all others as they are."""

    key: str  # verl's
    phases: tuple[str, ...]  # that depend on it and were looked at
    now: float | None  # None: not told
    fits: float | None  # the largest that fits with room; None: none does
    at_most: float | None  # the largest that is expected to fit, though it may turn out tight


class _Question(Struct, frozen=True):
    key: str
    phases: tuple[str, ...]
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
    """Of every setting that sizes a phase, in the order of a step. Arguments as of estimate_of."""

    def estimate(changed: Config) -> Estimate:
        return estimate_of(
            changed,
            shape,
            card,
            version=version,
            critic_shape=critic_shape,
            mean_length_tokens=mean_length_tokens,
        )

    told = told_by(config, version)
    questions = _questions(told, batches_of(config, version), estimate(config))
    return tuple(_answer(config, told, question, estimate) for question in questions)


def _questions(told: Told, batches: Batches, now: Estimate) -> Iterator[_Question]:
    if now.phase("rollout") is not None:
        sleeps = told.value(f"{ROLLOUT}.free_cache_engine") is not False
        phases = ("rollout", "update_weights") if sleeps else tuple(phase.phase for phase in now.phases)
        yield _Question(_SHARE_KEY, phases, _SHARES)
    for phase in batches.phases:
        if phase.phase in _LIMITS and now.phase(phase.phase) is not None:
            keys = PHASES[phase.phase]
            if phase.is_dynamic:
                yield _Question(keys.tokens_max, (phase.phase,), range(_TOKEN_STEP, _TOKENS_MOST + 1, _TOKEN_STEP))
            else:
                yield _Question(keys.sequences[0], (phase.phase,), _divisors(phase.sequences_per_gpu or 1))
    lengths = range(_TOKEN_STEP, _longest(told, batches) + 1, _TOKEN_STEP)
    yield _Question(_LENGTH_KEY, tuple(phase.phase for phase in now.phases), lengths)


def _longest(told: Told, batches: Batches) -> int:
    """The longest response that is worth asking for: verl stops where a sequence is longer than a dynamic batch."""
    caps = [phase.tokens_per_micro_batch for phase in batches.phases if phase.is_dynamic]
    known = [cap * (batches.sequence_parallel_size or 1) for cap in caps if cap is not None]
    return min(known, default=_TOKENS_MOST) - told.count("data.max_prompt_length", otherwise=0)


def _answer(config: Config, told: Told, question: _Question, estimate: Callable[[Config], Estimate]) -> Largest:
    def is_at_least(verdicts: tuple[str, ...]) -> Callable[[float], bool]:
        def is_so(value: float) -> bool:
            found = estimate({**config, question.key: value})
            looked_at = (found.phase(name) for name in question.phases)
            return all(phase is None or phase.verdict in verdicts for phase in looked_at)

        return is_so

    now = told.value(question.key)
    return Largest(
        key=question.key,
        phases=question.phases,
        now=float(now) if isinstance(now, int | float) and not isinstance(now, bool) else None,
        fits=_last(question.choices, is_at_least(("fits",))),
        at_most=_last(question.choices, is_at_least(("fits", "tight"))),
    )


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
