"""What a remedy is weighed by: the run's configuration, and what is known of the memory."""

from typing import NamedTuple

from oomwatch.core.facts import Facts, PhaseFacts
from oomwatch.core.needs import work_of
from oomwatch.core.settings import Settings
from oomwatch.plan.settings import Config


class Situation(NamedTuple):
    config: Config
    version: str | None  # of verl
    facts: Facts
    phase: str | None = None  # of the cause

    @property
    def settings(self) -> Settings:
        return self.facts.settings

    @property
    def gpus(self) -> int | None:
        """Of the whole run."""
        nodes, each = self.number_of("trainer.nnodes"), self.number_of("trainer.n_gpus_per_node")
        return each * (nodes or 1) if each else None

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
