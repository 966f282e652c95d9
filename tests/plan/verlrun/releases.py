"""One release of verl: its configuration, its checks in the driver, and what its classes need to be asked."""

import copy
import functools
import sys
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, get_args

from omegaconf import DictConfig, OmegaConf
from tests.plan.verlrun.excerpts import about, class_of, function, run

Settings = dict[str, Any]
ASIDE = (
    "checkpoint",
    "checkpoint_engine",
    "custom_reward_function",
    "distillation",
    "global_profiler",
    "npu_profile",
    "optim",
    "policy_loss",
    "profiler",
    "prometheus",
    "qat",
    "ray_init",
    "ray_kwargs",
    "server",
    "trace",
    "transfer_queue",
)


class Release:
    """As it lies in a folder that is named as it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "verl"
        self.minor = int(folder.name.split(".")[1])
        self._bring_what_vllm_would_need()
        if self.minor >= 6:
            self._open_no_model()

    @property
    def has_engines(self) -> bool:
        """One worker for all strategies, in place of one for each."""
        return self.minor >= 8

    def function(self, where: str) -> Any:
        """ "workers/fsdp_workers.py:Class.method" of this release."""
        path, name = where.split(":")
        return function(self.folder / path, name)

    def config(self, strategy: str, settings: Settings) -> DictConfig:
        """verl's own defaults with these settings over them, resolved as its main program does."""
        config = copy.deepcopy(self._defaults("megatron" if strategy == "megatron" else "fsdp"))
        for key, value in settings.items():
            OmegaConf.update(config, key, value, force_add=True)
        OmegaConf.resolve(config)
        return config

    @functools.cache  # noqa: B019 - one release lives as long as the process
    def _defaults(self, strategy: str) -> DictConfig:
        name = "ppo_megatron_trainer.yaml" if strategy == "megatron" else "ppo_trainer.yaml"
        folder = self.folder / "trainer/config"
        generated = folder / f"_generated_{name}"
        loaded = OmegaConf.load(generated if generated.exists() else folder / name)
        assert isinstance(loaded, DictConfig)
        _prune(loaded)
        return loaded

    # ------------------------------------------------------------ the driver

    def validate(self, config: DictConfig) -> None:
        use = {"use_reference_policy": needs_reference(config), "use_critic": self.needs_critic(config)}
        if self.minor >= 6:
            from verl.utils.config import validate_config  # noqa: PLC0415 - there is none before a release is chosen

            validate_config(config, **use)
            return
        names = self._names()
        run([self.function("trainer/ppo/ray_trainer.py:RayPPOTrainer._validate_config")], names)
        names["_validate_config"](SimpleNamespace(config=config, **use))

    def needs_critic(self, config: DictConfig) -> bool:
        names = self._names()
        if self.minor >= 6:
            run([self.function("trainer/ppo/utils.py:need_critic")], names)
            return bool(names["need_critic"](config))
        names["self"] = SimpleNamespace(config=config)
        run(about(self.function("trainer/ppo/ray_trainer.py:RayPPOTrainer.__init__").body, "use_critic = "), names)
        return bool(names["self"].use_critic)

    def dataclass_of(self, section: DictConfig) -> Any:
        """The section as verl's workers get it: its own class, whose construction checks it."""
        if "_target_" not in section:
            return section
        from verl.utils.config import omega_conf_to_dataclass  # noqa: PLC0415 - there is none before a release is chosen

        return omega_conf_to_dataclass(section)

    def _names(self) -> dict[str, Any]:
        quiet = SimpleNamespace(warn=lambda *_args, **_kwargs: None)
        names: dict[str, Any] = {"DictConfig": DictConfig, "Enum": Enum, "warnings": quiet}
        places = ("trainer/ppo/core_algos.py", "trainer/ppo/ray_trainer.py")
        found = (class_of(self.folder / place, "AdvantageEstimator") for place in places)
        run([next(one for one in found if one is not None)], names)
        return names

    def _open_no_model(self) -> None:
        """The class of a model opens it when it is made; which model it is says nothing of batches."""
        from verl.workers.config.model import HFModelConfig  # noqa: PLC0415 - there is none before a release is chosen

        HFModelConfig.__post_init__ = lambda _model: None

    def _bring_what_vllm_would_need(self) -> None:
        """The module that asks vLLM for its ranks also imports vLLM; the one function that is asked needs none."""
        path = self.folder / "workers/rollout/vllm_rollout/utils.py"
        if self.minor >= 7 and class_of(path, "get_vllm_max_lora_rank") is not None:
            module = ModuleType("verl.workers.rollout.vllm_rollout.utils")
            names: dict[str, Any] = {"Literal": Literal, "get_args": get_args}
            run([function(path, "get_vllm_max_lora_rank")], names)
            module.__dict__["get_vllm_max_lora_rank"] = names["get_vllm_max_lora_rank"]
            sys.modules[module.__name__] = module


def _prune(config: DictConfig) -> None:
    """Without the large sections that no batch is made of, whose copies would take most of the time."""
    actor_rollout_ref = config.actor_rollout_ref
    for section in (config, actor_rollout_ref.actor, actor_rollout_ref.rollout, actor_rollout_ref.ref, config.critic):
        for name in ASIDE:
            section.pop(name, None)


def needs_reference(config: DictConfig) -> bool:
    """As every release's main program decides it."""
    in_reward = config.algorithm.get("use_kl_in_reward", False)
    return bool(in_reward or config.actor_rollout_ref.actor.use_kl_loss)


def gpus_of(config: DictConfig) -> int:
    return int(config.trainer.n_gpus_per_node * config.trainer.nnodes)
