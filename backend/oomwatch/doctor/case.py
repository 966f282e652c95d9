"""A configuration on a machine: what comes of it as it is, and what would come of it with changes."""

import functools
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct, structs

from oomwatch.doctor.changed import Changeable, Changes
from oomwatch.doctor.read.reading import Reading
from oomwatch.plan.batches import Batches, batches_of
from oomwatch.plan.cards import Card
from oomwatch.plan.checks.kinds import unsettles
from oomwatch.plan.memory import Estimate, Largest, PhaseEstimate, estimate_of, largest_that_fits
from oomwatch.plan.memory import Verdict as MemoryVerdict
from oomwatch.plan.memory.estimate import TIGHT_RATIO
from oomwatch.plan.models import shape_named
from oomwatch.plan.problems import Problem, problems_of
from oomwatch.plan.settings import Config
from oomwatch.plan.shape import ModelShape
from oomwatch.plan.verlkeys import Default


class Given(Struct, frozen=True, kw_only=True):
    """What a person says beside the configuration. A model that is not given is looked for by the name of its path."""

    shape: ModelShape | None = None
    critic_shape: ModelShape | None = None
    card: Card | None = None
    host_bytes: int | None = None  # that the run may take of a node
    mean_length_tokens: float | None = None  # prompt and response; the longest that is allowed where it is not told


class Look(NamedTuple):
    """What comes of a configuration."""

    config: Config
    problems: tuple[Problem, ...]
    batches: Batches
    estimate: Estimate | None
    why_none: str | None = None  # why nothing could be estimated though card and model are known

    @property
    def errors(self) -> frozenset[tuple[str, str]]:
        """What verl would stop with."""
        return errors_of(self.problems)

    @property
    def unsettled(self) -> tuple[str, ...]:
        """Settings whose value is none that anything could be estimated with."""
        return tuple(dict.fromkeys(one.key for one in self.problems if unsettles(one)))

    @property
    def phases(self) -> tuple[PhaseEstimate, ...]:
        """None where nothing is estimated."""
        return self.estimate.phases if self.estimate else ()

    def phase(self, name: str) -> PhaseEstimate | None:
        return next((one for one in self.phases if one.phase == name), None)

    @property
    def unsized(self) -> tuple[str, ...]:
        """Phases whose passes have no known size: nothing can be said of them."""
        known = {one.phase for one in self.phases}
        return tuple(one.phase for one in self.batches.phases if one.phase not in known) if self.estimate else ()

    @property
    def excess_bytes(self) -> float:
        """By how much all phases together are above what is safe; one that cannot run at all counts a whole card."""
        return sum(excess_of(phase) for phase in self.phases)

    @property
    def worst(self) -> PhaseEstimate | None:
        """The phase that is the furthest from being safe; where all are safe, the one with the highest peak."""
        return max(self.phases, key=lambda one: (excess_of(one), one.expected_bytes), default=None)

    @property
    def fits(self) -> bool:
        return self.estimate is not None and self.estimate.verdict == "fits" and not self.unsized


def excess_of(phase: PhaseEstimate) -> float:
    """What has to be freed in a phase for it to fit at the upper end of its interval."""
    trouble = phase.capacity_bytes if phase.trouble else 0.0
    return trouble + max(0.0, phase.high_bytes - TIGHT_RATIO * phase.capacity_bytes)


def errors_of(problems: Iterable[Problem]) -> frozenset[tuple[str, str]]:
    return frozenset((one.check, one.key) for one in problems if one.severity == "error")


class Case:
    """A reading with its machine. Every set of changes is looked at once."""

    def __init__(self, reading: Reading, given: Given) -> None:
        self.reading = reading
        self.given = given
        self.shape = given.shape or _named(reading.model_path)
        self.critic_shape = given.critic_shape or _named(reading.critic_model_path)
        self._changeable = Changeable(reading)
        self._looks: dict[tuple[tuple[str, object], ...], Look] = {}

    @functools.cached_property
    def as_it_is(self) -> Look:
        return self.look({})

    def look(self, changes: Changes) -> Look:
        """What comes of the configuration with these changes."""
        key = tuple(sorted(changes.items()))
        if key not in self._looks:
            self._looks[key] = self._look({**self.reading.emptied, **self._changeable.config(changes)})
        return self._looks[key]

    def largest(self) -> tuple[Largest, ...]:
        """How far each setting that sizes a phase can go, as the estimate has it; verl may still refuse it."""
        look, given = self.as_it_is, self.given
        if look.estimate is None or self.shape is None or given.card is None:
            return ()
        return largest_that_fits(
            look.config,
            self.shape,
            given.card,
            version=self.reading.version,
            critic_shape=self.critic_shape,
            mean_length_tokens=given.mean_length_tokens,
        )

    @property
    def host_verdict(self) -> MemoryVerdict | None:
        """Whether a node's memory holds it; None where nobody told what a node has, or nothing is estimated."""
        capacity, estimate = self.given.host_bytes, self.as_it_is.estimate
        if capacity is None or estimate is None:
            return None
        return estimate.host.verdict_on(capacity)

    def value_of(self, key: str) -> Default:
        """What the configuration has for a key now; None where it has none."""
        found = self.reading.setting(key)
        return found.value if found else None

    @functools.cached_property
    def outlived(self) -> frozenset[tuple[str, str]]:
        """What should have stopped a run, by its log, that took steps all the same."""
        if not self.reading.has_run:
            return frozenset()
        return errors_of(problems_of(self.reading.as_printed, self.reading.version))

    def _problems(self, config: Config) -> tuple[Problem, ...]:
        found = problems_of(config, self.reading.version)
        return tuple(
            structs.replace(one, severity="warning") if (one.check, one.key) in self.outlived else one for one in found
        )

    def _look(self, config: Config) -> Look:
        problems, batches = self._problems(config), batches_of(config, self.reading.version)
        estimate, why_none = (None, None) if any(map(unsettles, problems)) else self._estimate(config, batches)
        return Look(config, problems, batches, estimate, why_none)

    def _estimate(self, config: Config, batches: Batches) -> tuple[Estimate | None, str | None]:
        given = self.given
        if self.shape is None or given.card is None or batches.gpus is None:
            return None, None
        try:
            found = estimate_of(
                config,
                self.shape,
                given.card,
                version=self.reading.version,
                critic_shape=self.critic_shape,
                mean_length_tokens=given.mean_length_tokens,
            )
        except ValueError as error:
            return None, str(error)
        return found, None


def _named(path: str | None) -> ModelShape | None:
    return shape_named(path) if path else None
