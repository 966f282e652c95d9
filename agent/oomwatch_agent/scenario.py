"""What a simulated training run does, moment by moment. Pure: a scenario and a seed always tell the same story.

The shape is that of a colocated verl run on 80 GiB cards: the phases of a step in verl's order, with the levels and the
sawtooth of public reports (8 to 57 GiB twice a step). Everything here is in the scenario's own time, at speed 1; memory
is in GiB of one GPU.
"""

import itertools
import math
import random
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

CARD_TOTAL_GIB = 81559 / 1024  # an H100 of 80 GB, as its driver says it
CARD_RESERVED_GIB = 551 / 1024
CARD_USABLE_GIB = CARD_TOTAL_GIB - CARD_RESERVED_GIB
HOST_TOTAL_GIB = 1007.0
HOST_IDLE_GIB = 38.0
SHM_TOTAL_GIB = 64.0
SPILL_FOLDER = "/tmp/ray"  # noqa: S108 - a name that is shown, not a path to write to
DISK_TOTAL_GIB, DISK_IDLE_GIB = 3576.0, 1210.0
SHM_GIB = 11.5  # the object store's share of a run: batches on their way from rollout to update
SPILLED_GIB = 24.0  # of earlier steps, that Ray has moved out of it
RAY_KILLS_AT = 0.95  # share of the host's memory; Ray's own default
MAX_RESPONSE_TOKENS = 4096
USUAL_TOKENS = 620
SEQUENCES_PER_STEP = 720  # 90 prompts, 8 responses to each
SLEEPING_ENGINE_GIB = 4.1  # left behind by vLLM's sleep, level 2, on an 8B model

Ending: TypeAlias = Literal["device_oom", "wake_oom", "host_oom"]


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a run, if anything. The defaults are a healthy run."""

    step_seconds: float = 24.0
    base_gib: float = 0.0  # that every phase has more than the usual run
    growth_gib: float = 0.0  # that every phase gains from step to step
    residue_from_step: int | None = None
    residue_gib: float = 0.0  # that each sleep from that step on leaves behind more than the one before
    slow_steps: tuple[int, ...] = ()  # of every dozen
    tokens_gained: int = 0  # by the mean response, a step
    sudden_oom_step: int | None = None
    host_gib: float = 374.0  # that the run takes of the host's memory
    host_growth_gib: float = 0.0  # that it gains a step
    storm_from_step: int | None = None  # from here on, twelve switches to rollout a step instead of one


SLOW_FACTOR = 3.4
STORM_CYCLES = 12

STORIES: dict[str, Story] = {
    "healthy": Story(),
    "leak": Story(growth_gib=2.0),
    "sleep-residue": Story(residue_from_step=4, residue_gib=7.5),
    "slow-rollout": Story(slow_steps=(6, 7, 8)),
    "length-growth": Story(tokens_gained=160),
    "oom": Story(sudden_oom_step=4),
    "host-leak": Story(host_growth_gib=30.0),
    "reshard-storm": Story(storm_from_step=4),
}

# Two runs side by side, each on half of the GPUs. Paced so that within 90 seconds a person has seen several steps of a
# healthy run, and of one whose sleeping engine keeps more from step to step, with its forecast; seven steps later,
# after about two and a half minutes, that run ends out of memory. Much shorter steps would, rightly, be taken for too
# many switches between training and rollout.
DEMO: dict[str, Story] = {
    "demo-healthy": Story(step_seconds=13.0, host_gib=190.0),
    "demo-leak": Story(step_seconds=11.0, base_gib=5.0, residue_from_step=2, residue_gib=1.3, host_gib=190.0),
}

SCENARIOS: tuple[str, ...] = (*STORIES, "demo")


class _Phase(msgspec.Struct, frozen=True):
    name: str
    share: float  # of the step's time
    gib: float
    utilization: float
    wiggle_gib: float  # micro batches come and go


_STEP = (
    _Phase("gen", 0.42, 57.0, 0.93, 0.2),
    _Phase("reward", 0.03, 9.0, 0.0, 0.05),
    _Phase("old_log_prob", 0.10, 34.0, 0.88, 2.0),
    _Phase("ref", 0.09, 31.0, 0.86, 2.0),
    _Phase("adv", 0.02, 11.0, 0.02, 0.05),
    _Phase("update_actor", 0.25, 46.0, 0.97, 3.0),
)
_UPDATE_WEIGHTS = _Phase("update_weights", 0.09, 43.0, 0.35, 0.1)
_START = _Phase("start", 0.6, 22.0, 0.1, 0.1)
_DYING_SECONDS = 1.0
_DOWN_SECONDS = 8.0
_DOWN_GIB = 0.6
_DOWN = _Phase("down", 0.0, _DOWN_GIB, 0.0, 0.0)
_FED_BY_LENGTH = frozenset({"old_log_prob", "ref", "update_actor"})
_GIB_PER_TOKEN = 7.8 / 1000  # activations and logits of a micro batch of 8, a token of the mean response


class StepNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """What the trainer's step line says when a step is done. `phase_seconds` is in the scenario's time."""

    step: int
    phase_seconds: dict[str, float]
    tokens: float
    clip_ratio: float
    reserved_peak_gib: float
    allocated_peak_gib: float


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of one phase. Memory goes from `from_gib` to `gib` in its first part, then stays about there."""

    start: float  # seconds since the scenario began
    seconds: float
    phase: str
    attempt: int  # 1, and one more after every death of the run
    step: int
    from_gib: float
    gib: float
    residue_gib: float  # of it, held by a sleeping engine
    leaked_gib: float  # of it, that the trainer no longer uses and has not given back
    utilization: float
    wiggle_gib: float
    host_gib: float  # that the run takes
    shm_gib: float
    spilled_gib: float
    tokens: float  # of the step's mean response
    finished: StepNumbers | None = None  # the step is done when this moment ends
    ending: Ending | None = None  # the run dies in this moment

    @property
    def end(self) -> float:
        return self.start + self.seconds

    def gib_at(self, when: float, gpu: int) -> float:
        """Memory of one GPU at a time within the moment."""
        passed = when - self.start
        rise = min(1.0, passed / min(1.5, self.seconds / 2))
        wiggle = self.wiggle_gib * math.sin(2.1 * when + 1.7 * gpu) if rise >= 1 and self.ending is None else 0.0
        apart = 0.25 * math.sin(2.4 * gpu + self.attempt)  # ranks differ a little, each in its own way
        return min(CARD_USABLE_GIB - 0.05, max(0.4, self.from_gib + (self.gib - self.from_gib) * rise + wiggle + apart))


def moments(story: Story, seed: str) -> Iterator[Moment]:
    """The run from its start, for ever: where it dies, it is started again."""
    start, level = 0.0, _DOWN_GIB
    for attempt in itertools.count(1):
        for draft in _attempt(story, random.Random(f"{seed} {attempt}"), attempt):  # noqa: S311 - a simulation
            yield msgspec.structs.replace(draft, start=start, from_gib=level)
            start, level = start + draft.seconds, draft.gib


def _attempt(story: Story, noise: random.Random, attempt: int) -> Iterator[Moment]:
    """One life of the run; start and from_gib are still to be filled in."""
    yield _draft(story, _START, attempt=attempt, step=0, seconds=_START.share * story.step_seconds)
    for step in itertools.count(1):
        for moment in _step(story, noise, attempt, step):
            ending = _ending(story, moment)
            if ending is None:
                yield moment
                continue
            yield msgspec.structs.replace(moment, seconds=_DYING_SECONDS, ending=ending, finished=None)
            yield _draft(story, _DOWN, attempt=attempt, step=0, seconds=_DOWN_SECONDS)
            return


def _step(story: Story, noise: random.Random, attempt: int, step: int) -> Iterator[Moment]:
    tokens = min(MAX_RESPONSE_TOKENS * 0.95, USUAL_TOKENS + story.tokens_gained * step + noise.uniform(-12, 12))
    seconds = {phase.name: _phase_seconds(story, phase, step, tokens, noise) for phase in (*_STEP, _UPDATE_WEIGHTS)}
    for phase in _STEP:
        yield _draft(story, phase, attempt=attempt, step=step, seconds=seconds[phase.name], tokens=tokens)
    cycles = STORM_CYCLES if story.storm_from_step is not None and step >= story.storm_from_step else 1
    cycle_seconds = seconds["update_weights"]
    seconds["update_weights"] *= cycles
    for cycle in range(cycles):
        last = cycle == cycles - 1
        moment = _draft(story, _UPDATE_WEIGHTS, attempt=attempt, step=step, seconds=cycle_seconds, tokens=tokens)
        numbers = _numbers(story, step, tokens, seconds)
        yield msgspec.structs.replace(moment, finished=numbers) if last else moment


def _draft(
    story: Story, phase: _Phase, *, attempt: int, step: int, seconds: float, tokens: float = USUAL_TOKENS
) -> Moment:
    residue = _residue_gib(story, step)
    return Moment(
        start=0.0,
        seconds=seconds,
        phase=phase.name,
        attempt=attempt,
        step=step,
        from_gib=0.0,
        gib=_level_gib(story, phase, step, tokens) if step else phase.gib,
        residue_gib=residue,
        leaked_gib=_leaked_gib(story, step),
        utilization=phase.utilization,
        wiggle_gib=phase.wiggle_gib,
        tokens=tokens,
        host_gib=0.0 if phase.name == "down" else story.host_gib + story.host_growth_gib * step,
        shm_gib=0.0 if phase.name == "down" else SHM_GIB * (0.4 if phase.name == "gen" else 1.0),
        spilled_gib=SPILLED_GIB * min(1.0, step / 4),
    )


def _level_gib(story: Story, phase: _Phase, step: int, tokens: float) -> float:
    level = phase.gib + story.base_gib + _leaked_gib(story, step)
    level += _residue_gib(story, step) - SLEEPING_ENGINE_GIB
    if phase.name in _FED_BY_LENGTH:
        level += _GIB_PER_TOKEN * tokens
    if step == story.sudden_oom_step and phase.name == "update_actor":
        level += CARD_USABLE_GIB  # one batch of very long sequences
    return level


def rollout_gib(story: Story) -> float:
    """What a GPU holds during the rollouts of the story's first steps."""
    return _STEP[0].gib + story.base_gib


def _leaked_gib(story: Story, step: int) -> float:
    return story.growth_gib * max(0, step - 1)


def _residue_gib(story: Story, step: int) -> float:
    if story.residue_from_step is None:
        return SLEEPING_ENGINE_GIB
    return SLEEPING_ENGINE_GIB + story.residue_gib * max(0, step - story.residue_from_step + 1)


def _phase_seconds(story: Story, phase: _Phase, step: int, tokens: float, noise: random.Random) -> float:
    seconds = phase.share * story.step_seconds * noise.uniform(0.97, 1.03)
    if phase.name != "gen":
        return seconds
    slow = SLOW_FACTOR if (step - 1) % 12 + 1 in story.slow_steps else 1.0
    return seconds * slow * (0.5 + tokens / (2 * USUAL_TOKENS))


def _numbers(story: Story, step: int, tokens: float, seconds: dict[str, float]) -> StepNumbers:
    peak = max(_level_gib(story, phase, step, tokens) for phase in _STEP if phase.name in _FED_BY_LENGTH)
    over = max(0.0, tokens * 2.6 - MAX_RESPONSE_TOKENS)
    return StepNumbers(
        step=step,
        phase_seconds=dict(seconds),
        tokens=tokens,
        clip_ratio=min(0.9, over / (2 * MAX_RESPONSE_TOKENS)),
        reserved_peak_gib=min(CARD_USABLE_GIB, peak) - SLEEPING_ENGINE_GIB,
        allocated_peak_gib=(min(CARD_USABLE_GIB, peak) - SLEEPING_ENGINE_GIB) * 0.86,
    )


def _ending(story: Story, moment: Moment) -> Ending | None:
    if HOST_IDLE_GIB + moment.host_gib > RAY_KILLS_AT * HOST_TOTAL_GIB:
        return "host_oom"
    if moment.gib <= CARD_USABLE_GIB:
        return None
    return "wake_oom" if story.residue_from_step is not None and moment.phase == "gen" else "device_oom"
