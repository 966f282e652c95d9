"""What makes a run: everything that is drawn before it begins. The same spec and configuration give the same run."""

from typing import NamedTuple

from bench.warnings.nature import Nature
from bench.warnings.settings import Config
from bench.warnings.shapes import Card, Model

FAMILIES = ("trend", "host", "first_step", "sudden", "healthy")


class Tells(NamedTuple):
    """What is seen of a run beside the samples of the node."""

    steps: bool = True  # step lines
    config: bool = True
    probe: bool = False
    pool_in_process: bool = False  # torch counts a sleeping engine's pool: its figures exceed the device's
    debug: bool = False  # memory lines, of rank 0
    sleeps: bool = True  # vLLM's lines
    engine_metrics: bool = False


class Spec(NamedTuple):
    scenario: str
    seed: int
    attempt: int  # which draft of the seed it is
    family: str  # one of FAMILIES: how it is meant to end
    cause: str | None  # of wire.CAUSES
    alike: tuple[str, ...]  # causes that are as right
    model: Model
    card: Card
    reward_model: Model | None
    steps: int  # planned
    config: Config
    nature: Nature
    tells: Tells
    onset: int = 0  # the step from which something is wrong
    node: str = "gpu-01"

    @property
    def run(self) -> str:
        return f"{self.scenario}-{self.seed}"


class Truth(NamedTuple):
    """What became of a run."""

    fails: bool
    family: str
    cause: str | None
    alike: tuple[str, ...]
    onset_step: int
    steps: int  # finished ones
    seconds: float
    gpus: int
    oom_at: float | None = None
    oom_step: int | None = None
    phase: str | None = None
    node: str | None = None
    gpu: str | None = None  # None: the host
