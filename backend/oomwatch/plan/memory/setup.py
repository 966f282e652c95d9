"""All that shares the GPUs of a run: the models, the engine, and the passes of each phase."""

from collections.abc import Mapping

from msgspec import Struct

from oomwatch.plan.memory.names import Assumed
from oomwatch.plan.memory.workload import Engine, Model, Pass


class Setup(Struct, frozen=True, kw_only=True):
    """A colocated run as the formulas see it, whichever framework it is of."""

    gpus: int
    nodes: int = 1
    actor: Model
    critic: Model | None = None
    reference: Model | None = None
    engine: Engine | None = None
    passes: Mapping[str, Pass] = {}  # by phase
    longest_tokens: int = 0  # a sequence that the engine must be able to hold
    bucket_bytes: int = 0  # of weights on their way to the engine
    wakes_in_stages: bool = True  # the cache comes back only when the weights have come
    dataset_sequences: int = 0  # of a step, all GPUs together; what the driver holds
    assumed: tuple[Assumed, ...] = ()

    def model_of(self, phase: str) -> Model | None:
        """The model that works in a phase; where there is no reference of its own, the actor without its adapters."""
        if phase in ("values", "update_critic"):
            return self.critic
        return self.reference or self.actor if phase == "ref" else self.actor

    def others(self, phase: str) -> tuple[Model, ...]:
        """The models that wait meanwhile."""
        working = self.model_of(phase) if phase in self.passes else None
        return tuple(model for model in (self.actor, self.critic, self.reference) if model and model is not working)
