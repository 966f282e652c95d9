"""What a remedy is weighed by: the run's configuration, and what is known of the memory."""

from typing import NamedTuple

from oomwatch.core.facts import Facts, PhaseFacts
from oomwatch.core.needs import work_of
from oomwatch.core.settings import Settings
from oomwatch.plan.batches import CRITICS, Batches, PhaseBatches
from oomwatch.plan.phasekeys import PHASES
from oomwatch.plan.problems import problems_of
from oomwatch.plan.reader import reader_of
from oomwatch.plan.settings import ACTOR, CRITIC, Config


class Situation(NamedTuple):
    config: Config
    version: str | None  # of verl
    facts: Facts
    batches: Batches  # that verl makes of the configuration
    phase: str | None = None  # of the cause

    @property
    def settings(self) -> Settings:
        return self.facts.settings

    @property
    def gpus(self) -> int | None:
        """Of the whole run; None where nobody told how many a node has."""
        return self.batches.gpus if "trainer.n_gpus_per_node" in self.config else None

    def sequences_of_all(self, phase: PhaseBatches) -> int | None:
        """What a micro batch of all GPUs cuts."""
        if PHASES[phase.phase].is_update:
            section = CRITIC if phase.phase in CRITICS else ACTOR
            return reader_of(self.config, self.version).number(f"{section}.ppo_mini_batch_size")
        return self.batches.sequences_per_step

    def errors(self, changed: Config) -> frozenset[tuple[str, str]]:
        """What verl would stop with, with some settings changed."""
        found = problems_of({**self.config, **changed}, self.version)
        return frozenset((one.check, one.key) for one in found if one.severity == "error")

    @property
    def needed_bytes(self) -> float:
        return self.facts.needed_bytes or 0.0

    @property
    def active_bytes(self) -> float | None:
        """What the phase allocates for its work, at the worst that is expected."""
        here = self.phase_facts
        if here is None or here == self.facts.top_phase:
            return self.facts.active_bytes
        return work_of(here, self.facts.phases)

    @property
    def phase_facts(self) -> PhaseFacts | None:
        return next((one for one in self.facts.phases if one.phase == self.phase), None)

    def number_of(self, key: str) -> int | None:
        value = self.config.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None
