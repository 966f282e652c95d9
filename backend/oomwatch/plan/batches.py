"""verl's batch arithmetic: how a configuration cuts a step into the batches that each GPU works on.

Checked against verl's own code, 0.4 to 0.9 (tests/plan/test_against_verl.py). A sequence is a prompt with a response.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from oomwatch.plan import verlkeys
from oomwatch.plan.figure import Figure
from oomwatch.plan.groups import Groups, engine_ways, gpus_of, groups_of
from oomwatch.plan.padding import filled
from oomwatch.plan.phasekeys import PHASES, PhaseKeys
from oomwatch.plan.reader import Reader, reader_of
from oomwatch.plan.settings import ACTOR, CRITIC, ROLLOUT, Config


class Line(Struct, frozen=True):
    """One number of the arithmetic, as a person would work it out."""

    name: str  # a field's of Batches or PhaseBatches: `plan.line.<name>` in the catalogue
    value: int | None
    formula: str  # with the user's numbers: "60 × 12 / 6"; empty where the value is not known
    phase: str | None = None
    assumed: tuple[str, ...] = ()  # settings that nobody told: verl's default was taken
    missing: tuple[str, ...] = ()  # settings without which it is not known


class PhaseBatches(Struct, frozen=True, kw_only=True):
    """The passes of one phase, a GPU."""

    phase: str
    is_dynamic: bool  # cut by tokens, not by number
    sequences_per_gpu: int | None = None  # that are cut: of a mini batch in updates, of a step elsewhere
    micro_batch_size_per_gpu: int | None = None  # sequences; None where it is dynamic
    micro_batches: int | None = None  # None where it is dynamic: it depends on the lengths
    tokens_per_micro_batch: int | None = (
        None  # at most, on one GPU (of those that share a sequence each holds its part)
    )
    shares: int = 1  # GPUs that share a sequence: Ulysses' or context parallel ones, of the model that works
    limit_key: str  # the setting that bounds a pass: of tokens where it is dynamic, else of sequences


class Batches(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All derived numbers; None is not known. `working` tells how each came about."""

    strategy: str
    gpus: int | None = None
    sequence_parallel_size: int | None = None  # Ulysses'; 1 with Megatron
    model_parallel_size: int | None = None  # Megatron's tensor × pipeline × context; 1 elsewhere
    data_parallel_size: int | None = None
    sequences_per_step: int | None = None
    sequences_with_padding: int | None = None  # where the trainer fills a step up; None where it does not
    sequences_per_gpu: int | None = None  # of a step, a data-parallel rank, with those that fill it up
    mini_batches_per_step: int | None = None
    optimizer_steps_per_step: int | None = None  # mini batches in all epochs
    sequences_per_optimizer_step: int | None = None  # of all GPUs: the effective batch
    ppo_mini_batch_size_per_gpu: int | None = None  # sequences, as verl normalises it
    micro_batches_per_update: int | None = None  # of the actor, a mini batch: passes whose gradients are accumulated
    critic_ppo_mini_batch_size_per_gpu: int | None = None  # None where there is no critic
    rollout_replicas: int | None = None
    prompts_per_replica: int | None = None  # at most: some have one less where they cannot be dealt evenly
    sequences_per_replica: int | None = None
    phases: tuple[PhaseBatches, ...] = ()
    working: tuple[Line, ...] = ()

    def phase(self, name: str) -> PhaseBatches | None:
        return next((one for one in self.phases if one.phase == name), None)


def batches_of(config: Config, version: str | None = None) -> Batches:
    """Every number that verl derives from a configuration. `version` is verl's; the newest where it is not told."""
    return _Sheet(reader_of(config, version)).batches()


def phases_of(here: Reader) -> Iterator[str]:
    """The phases with passes of their own that a run has, in the order of a step."""
    yield "old_log_prob"
    if has_reference(here):
        yield "ref"
    if has_critic(here):
        yield from ("values", "update_critic")
    yield "update_actor"


def has_reference(here: Reader) -> bool:
    return here.is_on(f"{ACTOR}.use_kl_loss") or here.is_on("algorithm.use_kl_in_reward")


def has_critic(here: Reader) -> bool:
    """As told, else only generalized advantage estimation needs one (verl's need_critic)."""
    told = here.value(f"{CRITIC}.enable")
    return told if isinstance(told, bool) else here.value("algorithm.adv_estimator") == "gae"


def learning(here: Reader) -> tuple[str, ...]:
    """The sections of the models that learn."""
    return (ACTOR, CRITIC) if has_critic(here) else (ACTOR,)


def _dealt(whole: Figure, parts: Figure) -> Figure:
    """The most that one of the parts gets; the formula tells the least too, where they differ."""
    most = whole.up(parts)
    if not whole.value or not parts.value or not most.value or whole.value % parts.value == 0:
        return most
    return Figure(most.value, f"{most.formula} = {most.value - 1}…{most.value}", most.assumed, most.missing)


class _Sheet:
    """The arithmetic, line by line."""

    def __init__(self, here: Reader) -> None:
        self.here = here
        self.lines: list[Line] = []

    def note(self, name: str, figure: Figure, phase: str | None = None) -> Figure:
        """Write a number down, to go on with as one number."""
        self.lines.append(Line(name, figure.value, figure.formula, phase, figure.assumed, figure.missing))
        return figure.known_as()

    def batches(self) -> Batches:
        groups = self.groups()
        self.step(groups)
        self.replicas(groups)
        phases = tuple(self.phase(name, groups) for name in phases_of(self.here))
        numbers = {line.name: line.value for line in self.lines if line.phase is None}
        found = {
            "strategy": self.here.text(f"{ACTOR}.strategy") or self.here.strategy,
            "phases": phases,
            "working": tuple(self.lines),
            **numbers,
        }
        return msgspec.convert(found, Batches)

    def groups(self) -> Groups:
        gpus = self.note("gpus", gpus_of(self.here))
        is_megatron = self.here.strategy == "megatron"
        found = groups_of(self.here)
        ways = self.note("model_parallel_size" if is_megatron else "sequence_parallel_size", found.ways)
        return Groups(gpus, ways, self.note("data_parallel_size", gpus // ways), found.shares)

    def step(self, groups: Groups) -> None:
        here = self.here
        prompts, n, epochs = (
            here.figure(key) for key in ("data.train_batch_size", f"{ROLLOUT}.n", f"{ACTOR}.ppo_epochs")
        )
        mini = here.figure(f"{ACTOR}.ppo_mini_batch_size")
        told = self.note("sequences_per_step", prompts * n)
        sequences = filled(here, learning(here), told)
        if sequences != told:
            sequences = self.note("sequences_with_padding", sequences)
        self.note("sequences_per_gpu", sequences // groups.ranks)
        whole = prompts.up(mini) if sequences == told else sequences.up((mini * n).known_as())
        minis = self.note("mini_batches_per_step", whole)
        self.note("optimizer_steps_per_step", minis * epochs)
        self.note("sequences_per_optimizer_step", mini * n)
        self.note("ppo_mini_batch_size_per_gpu", mini * n // groups.ranks)
        if has_critic(here):
            ranks = groups_of(here, CRITIC).ranks.known_as()
            critics = here.figure(f"{CRITIC}.ppo_mini_batch_size")
            self.note("critic_ppo_mini_batch_size_per_gpu", critics * n // ranks)

    def replicas(self, groups: Groups) -> None:
        here = self.here
        replicas = self.note("rollout_replicas", groups.gpus // engine_ways(here))
        prompts = self.note("prompts_per_replica", _dealt(here.figure("data.train_batch_size"), replicas))
        self.note("sequences_per_replica", prompts * here.figure(f"{ROLLOUT}.n"))

    def phase(self, name: str, groups: Groups) -> PhaseBatches:
        """How the sequences of a phase are cut on one GPU."""
        keys = PHASES[name]
        critic = name in CRITICS
        own = groups_of(self.here, CRITIC) if critic else groups
        share = self.share(keys, critic, own)
        if is_dynamic(self.here, name):
            key = tokens_key(self.here, name)
            tokens = self.note("tokens_per_micro_batch", self.here.figure(key), name)
            return PhaseBatches(
                phase=name,
                is_dynamic=True,
                sequences_per_gpu=share.value,
                tokens_per_micro_batch=tokens.value,
                shares=own.shares.value or 1,
                limit_key=key,
            )
        micro = self.note("micro_batch_size_per_gpu", micro_batch(self.here, keys, own), name)
        passes = self.note("micro_batches", share.up(micro), name)
        if name == "update_actor":
            self.note("micro_batches_per_update", share.up(micro))
        tokens = self.note("tokens_per_micro_batch", (micro * length_of(self.here)).up(own.shares), name)
        return PhaseBatches(
            phase=name,
            is_dynamic=False,
            sequences_per_gpu=share.value,
            micro_batch_size_per_gpu=micro.value,
            micro_batches=passes.value,
            tokens_per_micro_batch=tokens.value,
            shares=own.shares.value or 1,
            limit_key=sequences_keys(self.here, keys)[0],
        )

    def share(self, keys: PhaseKeys, critic: bool, groups: Groups) -> Figure:
        """The sequences that a GPU cuts: of a mini batch in updates, of a step elsewhere."""
        of = "data.train_batch_size"
        if keys.is_update:
            of = f"{CRITIC if critic else ACTOR}.ppo_mini_batch_size"
        sequences = self.here.figure(of) * self.here.figure(f"{ROLLOUT}.n")
        if not keys.is_update:
            sequences = filled(self.here, learning(self.here), sequences)
        return (sequences // groups.ranks.known_as()).known_as()


CRITICS = ("values", "update_critic")


def is_dynamic(here: Reader, phase: str) -> bool:
    """Whether a phase cuts its batches by tokens. A critic that is an engine always does."""
    return here.is_on(PHASES[phase].dynamic) or (here.has_engines and phase in CRITICS)


def tokens_key(here: Reader, phase: str) -> str:
    """The setting that bounds the tokens of a pass."""
    if here.has_engines and phase == "values":
        return f"{CRITIC}.ppo_infer_max_token_len_per_gpu"
    return PHASES[phase].tokens_max


def length_of(here: Reader) -> Figure:
    """The longest sequence that is allowed, in tokens."""
    return (here.figure("data.max_prompt_length") + here.figure("data.max_response_length")).known_as()


def sequences_keys(here: Reader, keys: PhaseKeys) -> tuple[str, ...]:
    """The settings of a pass' sequences that the release has: Megatron's critic has none for its passes alone."""
    known = tuple(key for key in keys.sequences if verlkeys.takes(key, here.release, here.strategy))
    return known or keys.sequences


def micro_batch(here: Reader, keys: PhaseKeys, groups: Groups) -> Figure:
    """Sequences of one pass, a GPU. The deprecated setting is of all GPUs: verl divides it among the ranks."""
    told = [figure for key in sequences_keys(here, keys) if (figure := here.figure(key)).value is not None]
    if told:
        return told[0]
    whole = here.figure(keys.sequences_of_all)
    if whole.value is not None and not here.has_engines:
        return whole // groups.ranks.known_as()
    return here.figure(sequences_keys(here, keys)[0])
