"""What the causes are told apart by, in plain numbers: core/cause/ and advice/ are arithmetic on `Facts`."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from oomwatch import wire
from oomwatch.core.parts import Part
from oomwatch.core.settings import Settings
from oomwatch.core.subject import Topic

# Phases whose memory is that of the sequences in one micro batch. The rollout's is a pool of constant size.
LENGTH_DRIVEN = ("reward", "old_log_prob", "ref", "values", "update_critic", "update_actor")


class PhaseFacts(NamedTuple):
    """Device memory in one phase, over the last steps. A rise that is not significant is 0."""

    phase: str
    peak_bytes: float  # of the last steps, the highest
    floor_bytes: float  # of the last step
    peak_rise_bytes: float = 0.0
    floor_rise_bytes: float = 0.0


class OomFacts(NamedTuple):
    """A failure that was reported, as far as its message told."""

    on: Literal["device", "host"]
    phase: str | None = None
    tried_bytes: float | None = None
    free_bytes: float | None = None
    slack_bytes: float | None = None  # reserved but unallocated
    error: str = ""
    process: str = ""

    @property
    def is_wake_up(self) -> bool:
        """vLLM's own allocator failed, which is asked for memory when the engine wakes up and at no other time."""
        return "cumem" in self.error.lower()


class Facts(Struct, frozen=True, kw_only=True):
    """None: not known. Rises are over the last STEPS steps, and 0 where there is no significant one."""

    topic: Topic
    watched: str = ""  # what the rule watches: its metric, the event, or its kind
    phase: str | None = None  # the one that the rule names
    verdict: Mapping[str, wire.Fact] = {}  # the numbers of the judgement
    oom: OomFacts | None = None
    settings: Settings = Settings()

    # device memory
    capacity_bytes: float | None = None
    peak_bytes: float | None = None
    phases: tuple[PhaseFacts, ...] = ()
    peak_rise_bytes: float = 0.0
    floor_rise_bytes: float = 0.0  # what all phases have more at their lowest
    active_rise_bytes: float = 0.0  # peak minus floor: what a phase allocates for its own work
    active_bytes: float | None = None  # what the phase that matters will allocate for its own work
    needed_bytes: float | None = None  # what has to be freed to be safe
    pace_bytes: float = 0.0  # by how much memory rises a step now
    steps_left: float | None = None  # until it is full, where memory rises
    step_seconds: float | None = None
    steps: int = 0

    # torch and the engine
    allocated_rise_bytes: float | None = None
    allocated_noise_bytes: float = 0.0  # how far the work of single steps moves that peak
    reserved_peak_bytes: float | None = None
    slack_bytes: float | None = None
    slack_rise_bytes: float = 0.0
    retry_steps: int = 0  # of the last steps, those in which the allocator had to flush
    residue_bytes: float | None = None
    residue_before_bytes: float | None = None
    residue_rise_bytes: float = 0.0
    residue_pace_bytes: float = 0.0  # a step
    parts: tuple[Part, ...] = ()  # processes on the card

    saved_share: float = 0.0  # of what the trainer gained, what came in steps after a checkpoint

    # what drives it
    length_tokens: float | None = None  # longest response of the last steps
    length_mean_tokens: float | None = None  # of the last step
    length_rise_tokens: float = 0.0
    length_before_tokens: float | None = None
    length_fit: float = 0.0  # correlation of the active memory with the length, 0 to 1
    clip_ratio: float | None = None
    peers_peak_bytes: float | None = None  # median of the run's other GPUs in the same step

    # host
    host_used_bytes: float | None = None
    host_limit_bytes: float | None = None
    limited_by: str = "machine"
    host_parts: tuple[Part, ...] = ()
    shm_used_bytes: float | None = None
    shm_total_bytes: float | None = None
    disk_used_bytes: float | None = None
    disk_total_bytes: float | None = None

    # speed
    kv_used_ratio: float | None = None
    requests_waiting: int | None = None
    reward_seconds: float | None = None
    reward_before_seconds: float | None = None

    @property
    def told_phase(self) -> str | None:
        """The phase that the failure or the rule names."""
        if self.oom is not None and (self.oom.phase or self.oom.is_wake_up):
            return self.oom.phase or "update_weights"
        return self.phase

    @property
    def top_phase(self) -> PhaseFacts | None:
        """The phase that matters: the one that is named, else the one with the highest peak."""
        known = next((one for one in self.phases if one.phase == self.told_phase), None)
        return known or max(self.phases, key=lambda one: one.peak_bytes, default=None)

    @property
    def named_phase(self) -> str | None:
        """The phase that matters by its name alone, also where no reading of it is known."""
        return self.told_phase or (self.top_phase.phase if self.top_phase else None)


def number(fact: wire.Fact | None) -> float | None:
    return float(fact) if isinstance(fact, int | float) else None
