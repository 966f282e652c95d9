"""A run on the drawing board: what every scenario starts from, and the means to say how full a phase shall be.

The arithmetic of memory.py says what a token costs; published figures are off from it by a factor of two either way. A
scenario says how full a phase is at a certain batch, and the draft finds micro batch and factor that make it so.
From then on both are facts of the run, and another configuration is answered by the same arithmetic.
"""

from random import Random
from statistics import fmean
from typing import Any, NamedTuple

from bench.warnings.batches import Lengths, draw_batch, longest_micro_batch, micro_batches
from bench.warnings.hostside import HostSide
from bench.warnings.memory import at_rest, batching_of, bytes_a_token, engine_of, loaded_for, resident_of
from bench.warnings.nature import Host, LengthCourse, Nature
from bench.warnings.settings import (
    ACTOR,
    CRITIC,
    CRITIC_DEFAULTS,
    DEFAULTS,
    MODEL,
    REF,
    REWARD_DEFAULTS,
    ROLLOUT,
    Settings,
    settings_of,
)
from bench.warnings.shapes import A100, GIB, H20, H100, LLAMA_8B, QWEN_1_5B, QWEN_3B, QWEN_7B, Card, Model
from bench.warnings.spec import Spec, Tells

from oomwatch import wire

COST_MIN, COST_MAX = 0.35, 2.8
MICRO_SIZES = (1, 2, 4, 8, 16, 32, 64)
TOKEN_KEYS = {
    "old_log_prob": f"{ROLLOUT}.log_prob_max_token_len_per_gpu",
    "ref": f"{REF}.log_prob_max_token_len_per_gpu",
    "update_actor": f"{ACTOR}.ppo_max_token_len_per_gpu",
}
MICRO_KEYS = {
    "old_log_prob": f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu",
    "ref": f"{REF}.log_prob_micro_batch_size_per_gpu",
    "update_actor": f"{ACTOR}.ppo_micro_batch_size_per_gpu",
    "update_critic": f"{CRITIC}.ppo_micro_batch_size_per_gpu",
    "reward": "reward_model.micro_batch_size_per_gpu",
}


class Preset(NamedTuple):
    model: Model
    gpus: int
    offload: bool
    prompts: int


PRESETS = (
    (Preset(QWEN_1_5B, 2, False, 32), 30),
    (Preset(QWEN_3B, 2, False, 24), 30),
    (Preset(QWEN_3B, 2, True, 24), 12),
    (Preset(QWEN_7B, 4, True, 32), 14),
    (Preset(QWEN_7B, 4, False, 32), 8),
    (Preset(LLAMA_8B, 8, False, 48), 6),
)
CARDS = ((A100, 45), (H100, 40), (H20, 15))
# steps only, memory lines, probe, samples only
TELLS = (
    (Tells(), 40),
    (Tells(debug=True), 18),
    (Tells(probe=True), 18),
    (Tells(probe=True, engine_metrics=True), 6),
    (Tells(probe=True, pool_in_process=True), 6),
    (Tells(steps=False, config=False, sleeps=False), 12),
)


class OutOfReachError(ValueError):
    """No configuration of this draft is as full as the scenario asks: draw another."""


def pick(dice: Random, choices: tuple[tuple[Any, int], ...]) -> Any:  # noqa: ANN401 - of whatever the choices are
    return dice.choices([one for one, _ in choices], [weight for _, weight in choices])[0]


class Draft:
    """Drawn from a seed; a scenario changes what it is about, then asks for the spec."""

    def __init__(self, scenario: str, seed: int, attempt: int) -> None:
        self.scenario, self.seed, self.attempt = scenario, seed, attempt
        self.dice = dice = Random(f"{seed}/{scenario}/draft/{attempt}")
        self.preset: Preset = pick(dice, PRESETS)
        self.card: Card = pick(dice, CARDS)
        self.tells: Tells = pick(dice, TELLS)
        self.reward_model: Model | None = None
        self.steps = 200
        self.config = self._config()
        self.nature = self._nature()

    def _config(self) -> dict[str, wire.ConfigValue]:
        dice, preset = self.dice, self.preset
        cap = dice.choice((2048, 4096, 4096, 8192))
        sized = {
            "data.train_batch_size": preset.prompts,
            "data.max_prompt_length": dice.choice((512, 1024)),
            "data.max_response_length": cap,
            "trainer.n_gpus_per_node": preset.gpus,
            "trainer.save_freq": dice.choice((-1, 20, 40)),
            "trainer.test_freq": dice.choice((-1, 10, 25)),
            f"{ACTOR}.ppo_mini_batch_size": preset.prompts,
            f"{ACTOR}.fsdp_config.param_offload": preset.offload,
            f"{ACTOR}.fsdp_config.optimizer_offload": preset.offload,
            f"{ROLLOUT}.enforce_eager": dice.random() < 0.3,
            f"{MODEL}.enable_gradient_checkpointing": True,
        }
        return {**DEFAULTS, **sized}

    def _nature(self) -> Nature:
        dice, cap = self.dice, self.number("data.max_response_length")
        usual = cap * dice.uniform(0.22, 0.4)
        return Nature(
            lengths=LengthCourse(start=usual, end=usual, over_steps=1, spread=dice.uniform(0.3, 0.5)),
            host=self._roomy_host(),
            context_bytes=dice.uniform(1.1, 3.3) * GIB,
            residue_bytes=dice.uniform(0.8, 4.5) * GIB,
            slack=dice.uniform(0.015, 0.05),
            residue_of_utilization=0.5,
        )

    def _roomy_host(self) -> Host:
        """A host with room: scenarios about it make it tight with `fit_host`."""
        dice = self.dice
        return Host(
            total_bytes=dice.choice((512, 1024)) * GIB,
            limit_bytes=None,
            shm_total_bytes=256 * GIB,
            disk_total_bytes=2000 * GIB,
            base_bytes=dice.uniform(12, 30) * GIB,
            worker_bytes=dice.uniform(4, 8) * GIB,
            engine_bytes=dice.uniform(3, 6) * GIB,
            driver_bytes=dice.uniform(4, 12) * GIB,
        )

    # ------------------------------------------------------------ changing it

    def number(self, key: str) -> int:
        return int(self.config[key])

    def set(self, **nature: Any) -> None:  # noqa: ANN401 - fields of Nature
        self.nature = self.nature._replace(**nature)

    def lengths(self, **course: Any) -> None:  # noqa: ANN401 - fields of LengthCourse
        self.set(lengths=self.nature.lengths._replace(**course))

    def with_critic(self) -> None:
        self.config |= {**CRITIC_DEFAULTS, "algorithm.adv_estimator": "gae"}

    def with_reward_model(self, model: Model) -> None:
        self.config |= {**REWARD_DEFAULTS, "reward_model.enable": True}
        self.reward_model = model

    @property
    def settings(self) -> Settings:
        return settings_of(self.config)

    # ------------------------------------------------------------ filling it

    def fixed_bytes(self, phase: str) -> float:
        """What a phase holds whatever its batch."""
        settings, nature = self.settings, self.nature
        has = resident_of(self.preset.model, settings, self.reward_model)
        engine = engine_of(self.card, has, settings, nature.residue_bytes)
        trainer = at_rest(has, settings) + loaded_for(phase, has, settings)
        engine_bytes = engine.woken if phase == "update_weights" else engine.asleep
        tenant = nature.tenant.at(0)
        return nature.context_bytes + tenant + engine_bytes + trainer * (1 + nature.slack)

    def longest(self, phase: str) -> float:
        """Tokens of a micro batch at the cap."""
        how = batching_of(phase, self.settings)
        assert how is not None, f"{phase} has no batch"
        return longest_micro_batch(how, self.settings)

    def usual(self, phase: str, median: float | None = None) -> float:
        """Tokens of a step's largest micro batch, on average, with the lengths at the run's begin or with others."""
        course, settings = self.nature.lengths, self.settings
        how = batching_of(phase, settings)
        assert how is not None, f"{phase} has no batch"
        lengths, found = Lengths(median or course.start, course.spread), list[float]()
        for place in range(5):
            dice = Random(f"{self.seed}/usual/{place}")
            batch = draw_batch(dice, lengths, settings, settings.gpus // settings.update_actor.parallel)
            found.append(max(max(micro_batches(rank, how)) for rank in batch.ranks))
        return fmean(found)

    def fill(self, phase: str, share: float, *, median: float | None = None) -> None:
        """Let a phase take so much of the card at the cap, or with lengths of this median. Raises OutOfReachError."""
        wanted = share * self.card.usable_bytes
        best: tuple[float, int, float] | None = None
        key, sizes = self._sizes(phase)
        for size in sizes:
            self.config[key] = size
            tokens = self.usual(phase, median) if median else self.longest(phase)
            room = wanted - self.fixed_bytes(phase)
            model = self.reward_model if phase == "reward" and self.reward_model else self.preset.model
            each = bytes_a_token(phase, model, self.settings) * (1 + self.nature.slack)
            cost = room / (tokens * each)
            strange = max(cost, 1 / cost) if cost > 0 else float("inf")
            if COST_MIN <= cost <= COST_MAX and (best is None or strange < best[0]):
                best = strange, size, cost
        if best is None:
            raise OutOfReachError(f"{self.scenario}: {phase} at {share:.0%}")
        self.config[key] = best[1]
        self.set(costs={**self.nature.costs, phase: best[2]})

    def _sizes(self, phase: str) -> tuple[str, tuple[int, ...]]:
        """The key that cuts a phase's micro batches, and what it may be."""
        if self.settings.update_actor.tokens_max is not None and phase in TOKEN_KEYS:
            return TOKEN_KEYS[phase], tuple(times * self.settings.longest for times in (1, 2, 3, 4, 6, 8, 12, 16))
        return MICRO_KEYS[phase], MICRO_SIZES

    def fill_rollout(self, share: float) -> None:
        """Let the engine's share of the card bring the rollout to so much. Raises OutOfReachError."""
        key = f"{ROLLOUT}.gpu_memory_utilization"
        self.config[key] = 0.0
        awake = self.fixed_bytes("adv") - (self.nature.residue_bytes if self.settings.sleeps else 0.0)
        utilization = round((share * self.card.usable_bytes - awake) / self.card.total_bytes, 2)
        if not 0.15 <= utilization <= 0.95:
            raise OutOfReachError(f"{self.scenario}: rollout at {share:.0%}")
        self.config[key] = utilization
        self.set(residue_of_utilization=utilization)

    def fill_all(self, share: float, *, rollout: float, but: tuple[str, ...] = ()) -> None:
        """Every phase with a batch at no more than `share` at the cap, the rollout at `rollout`."""
        self.fill_rollout(rollout)
        for phase in ("old_log_prob", "ref", "update_critic", "update_actor"):
            if phase in but or batching_of(phase, self.settings) is None:
                continue
            drawn = self.dice.uniform(0.82, 0.97) if phase != "update_actor" else 1.0
            self.fill(phase, share * drawn)
        if self.settings.update_critic and "update_critic" in self.nature.costs:
            self.set(costs={**self.nature.costs, "values": self.nature.costs["update_critic"]})
        if self.fixed_bytes("update_weights") > 0.93 * self.card.usable_bytes and "update_weights" not in but:
            raise OutOfReachError(f"{self.scenario}: the switch does not fit")

    def fit_host(self, share: float) -> None:
        """Let a container's limit be so tight that the run as it begins takes this share of it."""
        settings, host = self.settings, self.nature.host
        has = resident_of(self.preset.model, settings, self.reward_model)
        level = HostSide(self.nature, settings, has).level(0, settings.sequences * settings.response_tokens_max // 3)
        limit = float(round(level.used / share / GIB) * GIB)
        self.set(host=host._replace(limit_bytes=limit, total_bytes=max(host.total_bytes, 1.5 * limit)))

    def spec(self, family: str, cause: str | None = None, *, alike: tuple[str, ...] = (), onset: int = 0) -> Spec:
        return Spec(
            scenario=self.scenario,
            seed=self.seed,
            attempt=self.attempt,
            family=family,
            cause=cause,
            alike=alike,
            model=self.preset.model,
            card=self.card,
            reward_model=self.reward_model,
            steps=self.steps,
            config=self.config,
            nature=self.nature,
            tells=self.tells,
            onset=onset,
        )
