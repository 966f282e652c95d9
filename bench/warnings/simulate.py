"""The run itself: step after step, phase after phase, until it is done or out of memory. Nothing is told here."""

from random import Random
from typing import Literal, NamedTuple

from bench.warnings.allocator import Allocator, Full, Level
from bench.warnings.batches import Batch, Lengths, draw_batch, micro_batches
from bench.warnings.hostside import HostLevel, HostSide
from bench.warnings.memory import at_rest, batching_of, bytes_a_token, engine_of, loaded_for, resident_of
from bench.warnings.settings import Batching, Config, Settings, settings_of
from bench.warnings.shapes import GIB
from bench.warnings.spec import Spec, Truth

TRAINING = ("reward", "old_log_prob", "ref", "values", "adv", "update_critic", "update_actor")
AWAKE = ("rollout", "validation")  # phases in which the engine has all of its share
START_SECONDS, RESTART_SECONDS = 75.0, 110.0
# Tokens a second and GPU of a 7B model.
DECODED, SCORED, TRAINED = 20_000, 40_000, 12_000

EndingKind = Literal["device", "wake", "host", "disk"]


class Ending(NamedTuple):
    kind: EndingKind
    at: float
    step: int
    phase: str
    gpu: int | None = None
    tried_bytes: float | None = None


class Stretch(NamedTuple):
    """A phase of a step; phase "start" is before any step."""

    step: int
    segment: int
    phase: str
    start: float
    seconds: float
    levels: tuple[tuple[Level, ...], ...]  # by GPU, each in order of time
    host: HostLevel
    retries: tuple[int, ...]  # by GPU, since the process began, at its end


class Finished(NamedTuple):
    step: int
    segment: int
    at: float
    seconds: dict[str, float]  # by phase
    batch: Batch
    reserved_peak: float  # rank 0, since its process began
    allocated_peak: float
    host: HostLevel


class Story(NamedTuple):
    stretches: tuple[Stretch, ...]
    finished: tuple[Finished, ...]
    ending: Ending | None
    seconds: float


class _Dead(Exception):  # noqa: N818 - the run's end is no defect
    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.kind)
        self.ending = ending


def simulate(spec: Spec, config: Config | None = None) -> Story:
    """The run of `spec`, with its own configuration or with another."""
    return _Run(spec, settings_of({**spec.config, **(config or {})})).story()


def truth_of(spec: Spec, story: Story) -> Truth:
    ending = story.ending
    return Truth(
        fails=ending is not None,
        family=spec.family,
        cause=spec.cause,
        alike=spec.alike,
        onset_step=spec.onset,
        steps=len(story.finished),
        seconds=story.seconds,
        gpus=settings_of(spec.config).gpus,
        oom_at=ending.at if ending else None,
        oom_step=ending.step if ending else None,
        phase=ending.phase if ending else None,
        node=spec.node if ending else None,
        gpu=str(ending.gpu) if ending and ending.gpu is not None else None,
    )


class _Run:
    def __init__(self, spec: Spec, settings: Settings) -> None:
        self._spec, self._settings, self._nature = spec, settings, spec.nature
        self._has = resident_of(spec.model, settings, spec.reward_model)
        self._engine = engine_of(spec.card, self._has, settings, spec.nature.residue_bytes)
        usable = spec.card.usable_bytes
        self._allocators = [Allocator(usable, self._nature.slack) for _ in range(settings.gpus)]
        self._host = HostSide(self._nature, settings, self._has)
        self._stretches: list[Stretch] = []
        self._finished: list[Finished] = []
        self._at = 0.0
        self._segment = self._since = 0
        self._restarts = list(spec.nature.restarts)
        self._moments = False  # Adam makes its states at the first update
        self._synced = False
        self._checkpoints = 0
        self._tokens = 0

    def story(self) -> Story:
        ending: Ending | None = None
        try:
            self._start(0, START_SECONDS)
            step = 1
            while step <= self._spec.steps:
                step = self._resumed_at(step)
                self._step(step)
                step += 1
        except _Dead as dead:
            ending = dead.ending
            self._at = ending.at
        return Story(tuple(self._stretches), tuple(self._finished), ending, self._at)

    # ------------------------------------------------------------ restarts

    def _resumed_at(self, step: int) -> int:
        every = self._nature.restart_every
        if self._restarts and self._restarts[0][0] == step:
            step -= self._restarts.pop(0)[1]
        elif every is None or step == 1 or (step - 1) % every or self._since == step:
            return step
        self._segment += 1
        self._since, self._moments, self._checkpoints, self._synced = step, False, 0, False
        for allocator in self._allocators:
            allocator.restart()
        self._host.restart(step)
        self._start(step, RESTART_SECONDS)
        return step

    def _start(self, step: int, seconds: float) -> None:
        """Processes start, the trainer loads its shards, then the engine its own."""
        base = self._context()
        levels = tuple(
            (
                Level(0.0, self._tenant(step, gpu), 0.0, 0.0),
                Level(0.25, self._tenant(step, gpu) + base, 0.0, 0.0),
                Level(0.5, self._tenant(step, gpu) + base + self._rest(), self._rest(), self._rest()),
            )
            for gpu in range(self._settings.gpus)
        )
        self._add(step, "start", seconds, levels, self._host.level(step, 0))

    # ------------------------------------------------------------ a step

    def _step(self, step: int) -> None:
        batch = self._batch(step)
        self._tokens = batch.tokens
        seconds: dict[str, float] = {}
        for phase in self._phases(step):
            seconds[phase] = self._seconds(phase, step, batch)
            self._phase(phase, step, seconds[phase], batch)
        self._host.end_of_step(step, batch.tokens)
        rank_0 = self._allocators[0]
        level = self._host.level(step, batch.tokens)
        self._finished.append(
            Finished(step, self._segment, self._at, seconds, batch, rank_0.reserved_peak, rank_0.allocated_peak, level)
        )

    def _phases(self, step: int) -> list[str]:
        settings = self._settings
        left_out = set[str]()
        left_out |= set() if settings.ref else {"ref"}
        left_out |= set() if settings.update_critic else {"values", "update_critic"}
        phases = ["rollout", *(phase for phase in TRAINING if phase not in left_out)]
        if settings.save_every and step % settings.save_every == 0:
            phases.append("save_checkpoint")
        phases.append("update_weights")
        if settings.test_every and step % settings.test_every == 0:
            phases.append("validation")
        return phases

    def _batch(self, step: int) -> Batch:
        course = self._nature.lengths
        dice = self._dice("lengths", step)
        median = course.median_at(step) * max(0.5, 1 + dice.gauss(0, course.wobble))
        if course.long_batch_every and dice.random() < 1 / course.long_batch_every:
            median *= course.long_batch_times
        settings = self._settings
        return draw_batch(
            dice, Lengths(median, course.spread), settings, settings.gpus // settings.update_actor.parallel
        )

    def _dice(self, topic: str, step: int) -> Random:
        spec = self._spec
        return Random(f"{spec.seed}/{spec.scenario}/{spec.attempt}/{topic}/{step}")

    def _seconds(self, phase: str, step: int, batch: Batch) -> float:
        each = batch.tokens / self._settings.gpus * self._spec.model.parameters / 7.6e9
        micro = 0.12 * len(self._micro_batches(phase, 0, batch))
        usual = {
            "rollout": 4 + 0.006 * batch.response_max + each / DECODED,
            "reward": 2.5,
            "old_log_prob": 1.5 + each / SCORED + micro,
            "ref": 1.5 + each / SCORED + micro,
            "values": 1.5 + each / SCORED + micro,
            "adv": 0.7,
            "update_critic": 2 + each / TRAINED + micro,
            "update_actor": 3 + each / TRAINED + micro,
            "save_checkpoint": 6 + 1.2 * self._spec.model.parameters / 1e9,
            "update_weights": 2.5 + self._spec.model.parameters / 4e9,
            "validation": 12 + 0.005 * batch.response_max,
        }
        return usual[phase] * self._dice(phase, step).uniform(0.95, 1.08)

    # ------------------------------------------------------------ a phase

    def _phase(self, phase: str, step: int, seconds: float, batch: Batch) -> None:
        """Raises _Dead."""
        if phase == "save_checkpoint":
            self._checkpoints += 1
            self._host.checkpointed()
        moved = self._moved_activations(batch) if phase == "update_actor" else 0.0
        host = self._host.level(step, batch.tokens, moved)
        if (why := self._host.fails(host)) is not None:
            self._die(step, phase, seconds, host, [], Ending("disk" if why == "disk" else "host", 0, step, phase))
        found: list[tuple[Level, ...]] = []
        for gpu in range(self._settings.gpus):
            levels, full = self._held(phase, step, gpu, batch)
            found.append(tuple(levels))
            if full is not None:
                kind: EndingKind = "wake" if phase in ("update_weights", *AWAKE) and self._synced else "device"
                self._die(step, phase, seconds, host, found, Ending(kind, full.at, step, phase, gpu, full.tried_bytes))
        self._add(step, phase, seconds, tuple(found), host)
        if phase == "update_actor":
            self._moments = True
        self._synced = self._synced or phase == "update_weights"

    def _held(self, phase: str, step: int, gpu: int, batch: Batch) -> tuple[list[Level], Full | None]:
        """What one GPU holds in a phase, until it was full."""
        try:
            return self._levels(phase, step, gpu, batch), None
        except Full as full:
            return full.before, full

    def _levels(self, phase: str, step: int, gpu: int, batch: Batch) -> list[Level]:
        allocator = self._allocators[gpu]
        others = self._context() + self._tenant(step, gpu) + self._engine_at(phase, step)
        extras = [tokens * self._token_bytes(phase) for tokens in self._micro_batches(phase, gpu, batch)]
        base = self._rest() + self._kept(step, gpu) + self._loaded(phase, step, gpu)
        stuck = self._stuck(step)
        flush = phase == "update_actor" and self._dice(f"retries{gpu}", step).random() < self._nature.retries_at
        if phase in AWAKE or phase == "update_weights":
            allocator.empty()
        levels = allocator.hold(base, extras, stuck, others, flush=flush)
        if self._empties_after(phase):
            allocator.empty()
        return levels

    def _empties_after(self, phase: str) -> bool:
        """verl empties the cache where it moves states to the host, and after the update."""
        return self._settings.params_offloaded or phase == "update_actor"

    def _rest(self) -> float:
        rest = at_rest(self._has, self._settings)
        if not self._moments and not self._settings.optimizer_offloaded:
            rest -= self._has.optimizer
        return rest

    def _loaded(self, phase: str, step: int, gpu: int) -> float:
        nature = self._nature
        loaded = loaded_for(phase, self._has, self._settings)
        if phase == "update_actor" and not self._moments and not self._settings.optimizer_offloaded:
            loaded += self._has.optimizer
        if phase == "update_weights":
            scale = self._settings.bucket_bytes / (2 * GIB)
            loaded += scale * nature.sync_kept.at(step, self._since)
            if nature.sync_noise:
                noise = self._dice("switch", step).expovariate(1.0) * nature.sync_noise
                loaded += noise * scale * self._spec.card.total_bytes
        if phase == "save_checkpoint" and gpu == 0:
            noise = self._dice("checkpoint", step).expovariate(1.0) * nature.checkpoint_noise
            loaded += nature.checkpoint_device * (1 + noise) * self._spec.model.parameters
        return loaded

    def _kept(self, step: int, gpu: int) -> float:
        """What stays allocated though nothing needs it."""
        nature = self._nature
        kept = nature.leak.at(step, self._since) if nature.leak_gpu in (None, gpu) else 0.0
        return kept + (nature.checkpoint_kept.at(self._checkpoints) if gpu == 0 else 0.0)

    def _stuck(self, step: int) -> float:
        """Holes are as large as what is allocated and freed around them."""
        share = self._nature.stuck.at(step, self._since)
        how = self._settings.update_actor
        if not share:
            return 0.0
        longest = how.tokens_max or how.sequences * self._settings.longest / how.parallel
        return share * longest * self._token_bytes("update_actor")

    def _context(self) -> float:
        more = (0.0, *self._nature.after_restart)
        return self._nature.context_bytes + more[min(self._segment, len(more) - 1)]

    def _tenant(self, step: int, gpu: int) -> float:
        return self._nature.tenant.at(step) if gpu == self._nature.tenant_gpu else 0.0

    def _engine_at(self, phase: str, step: int) -> float:
        nature = self._nature
        left = nature.residue.at(step, self._since) if self._settings.sleeps else 0.0
        left *= self._settings.utilization / nature.residue_of_utilization
        if phase in AWAKE:
            return self._engine.awake + left
        return (self._engine.woken if phase == "update_weights" else self._engine.asleep) + left

    def _micro_batches(self, phase: str, gpu: int, batch: Batch) -> list[float]:
        how: Batching | None = batching_of(phase, self._settings)
        rank = gpu // self._settings.update_actor.parallel
        return micro_batches(batch.ranks[min(rank, len(batch.ranks) - 1)], how) if how else []

    def _token_bytes(self, phase: str) -> float:
        model = self._spec.reward_model if phase == "reward" and self._spec.reward_model else self._spec.model
        return bytes_a_token(phase, model, self._settings) * self._nature.costs.get(phase, 1.0)

    def _moved_activations(self, batch: Batch) -> float:
        if not self._settings.activations_offloaded:
            return 0.0
        most = max(self._micro_batches("update_actor", 0, batch))
        return most * 2 * self._spec.model.hidden * self._spec.model.layers

    # ------------------------------------------------------------ writing down

    def _add(
        self, step: int, phase: str, seconds: float, levels: tuple[tuple[Level, ...], ...], host: HostLevel
    ) -> None:
        retries = tuple(allocator.retries_total for allocator in self._allocators)
        stretch = Stretch(step, self._segment, phase, self._at, seconds, levels, host, retries)
        self._stretches.append(stretch)
        self._at += seconds

    def _die(
        self, step: int, phase: str, seconds: float, host: HostLevel, found: list[tuple[Level, ...]], ending: Ending
    ) -> None:
        """The last stretch: cut short, with what the other GPUs held where it is known."""
        last = self._stretches[-1].levels
        levels = tuple(found[gpu] if gpu < len(found) and found[gpu] else last[gpu][-1:] for gpu in range(len(last)))
        levels = tuple((one[0]._replace(at=0.0), *one[1:]) for one in levels)
        lasted = max(1.0, seconds * ending.at)
        self._add(step, phase, lasted, tuple(_stretched(one, seconds / lasted) for one in levels), host)
        raise _Dead(ending._replace(at=self._at))


def _stretched(levels: tuple[Level, ...], times: float) -> tuple[Level, ...]:
    return tuple(level._replace(at=min(1.0, level.at * times)) for level in levels)
