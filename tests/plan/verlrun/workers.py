"""What the workers of a release make of their part of the configuration when they are made, on so many GPUs."""

from types import SimpleNamespace
from typing import Any

from omegaconf import DictConfig, open_dict
from tests.plan.verlrun.excerpts import about, leading_to, refusals, run, up_to
from tests.plan.verlrun.releases import Release, gpus_of, needs_reference

Numbers = dict[str, int | None]
BATCHES = ("batch_size", "self.ulysses_sequence_parallel_size =")


class GpusLeftOverError(Exception):
    """What Megatron's own start refuses."""


def megatron_ranks(config: Any, gpus: int) -> int:
    """As Megatron's parallel_state has it, which refuses GPUs that are left over."""
    megatron = config.megatron
    ways = megatron.tensor_model_parallel_size * megatron.pipeline_model_parallel_size
    ways *= megatron.context_parallel_size
    if gpus % ways:
        raise GpusLeftOverError(f"world_size ({gpus}) is not divisible by {ways}")
    return int(gpus // ways)


class Workers:
    def __init__(self, release: Release, config: DictConfig) -> None:
        self.release = release
        self.config = config
        self.gpus = gpus_of(config)
        self.is_megatron = config.actor_rollout_ref.actor.strategy == "megatron"

    # ------------------------------------------------------------ a worker for each strategy (0.4 to 0.7)

    def actor(self) -> Numbers:
        section = self.config.actor_rollout_ref
        worker = self._worker(section, section.actor, reads="actor")
        self._normalise("ActorRolloutRefWorker", worker)
        return {
            "ppo_mini_batch_size_per_gpu": section.actor.ppo_mini_batch_size,
            "update_actor": section.actor.ppo_micro_batch_size_per_gpu,
            "old_log_prob": section.rollout.log_prob_micro_batch_size_per_gpu,
        }

    def reference(self) -> Numbers:
        """Megatron's and the later FSDP reference is made of the same class, in a process of its own."""
        section = self.config.actor_rollout_ref
        worker = self._worker(section, section.actor, reads="ref")
        worker._is_actor = worker._is_rollout = False
        self._normalise("ActorRolloutRefWorker", worker)
        return {"ref": section.ref.log_prob_micro_batch_size_per_gpu}

    def critic(self) -> Numbers:
        config = self.release.dataclass_of(self.config.critic)
        self._normalise("CriticWorker", self._worker(config, self.config.critic, reads="critic"))
        numbers: Numbers = {
            "critic_ppo_mini_batch_size_per_gpu": config.ppo_mini_batch_size,
            "update_critic": config.ppo_micro_batch_size_per_gpu,
        }
        return numbers if self.is_megatron else numbers | {"values": config.forward_micro_batch_size_per_gpu}

    def reward(self) -> Numbers:
        config = self.config.reward_model
        self._normalise("RewardModelWorker", self._worker(config, config, reads="reward"))
        return {"reward": config.micro_batch_size_per_gpu}

    def _worker(self, config: Any, own: Any, *, reads: str) -> SimpleNamespace:
        worker = SimpleNamespace(
            config=config, world_size=self.gpus, device_mesh=SimpleNamespace(size=lambda: self.gpus)
        )
        worker._is_actor, worker._is_rollout, worker._is_ref = reads == "actor", reads == "actor", reads == "ref"
        worker.ranks = megatron_ranks(own, self.gpus) if self.is_megatron else None
        return worker

    def _normalise(self, name: str, worker: SimpleNamespace) -> None:
        """The statements of the constructor that are about batches."""
        file = "megatron_workers" if self.is_megatron else "fsdp_workers"
        init = self.release.function(f"workers/{file}.py:{name}.__init__")
        names = {
            "self": worker,
            "mpu": SimpleNamespace(get_data_parallel_world_size=lambda: worker.ranks),
            "torch": SimpleNamespace(distributed=SimpleNamespace(get_world_size=lambda: self.gpus)),
        }
        run(about(init.body, *BATCHES), names)

    # ------------------------------------------------------------ one worker for all (0.8 and later)

    def engine_critic(self) -> Numbers:
        config = self.release.dataclass_of(self.config.critic)
        self._engine(config.engine, config.model)
        return {}

    def engine_actor(self) -> Numbers:
        """The reference first, then the actor: both are parts of one worker."""
        section, init = self.config.actor_rollout_ref, "workers/engine_workers.py:ActorRolloutRefWorker.init_model"
        body = self.release.function(init).body
        names = {
            "self": SimpleNamespace(config=section, role="actor_rollout"),
            "omega_conf_to_dataclass": self.release.dataclass_of,
            "open_dict": open_dict,
            "ActorConfig": object,
        }
        numbers: Numbers = {"ppo_mini_batch_size_per_gpu": None}
        if needs_reference(self.config):
            run(up_to(body, "ref_config"), names)
            self._engine(names["ref_config"].engine, section.model)  # type: ignore[attr-defined]
            numbers["ref"] = section.ref.ppo_micro_batch_size_per_gpu
        run(refusals(body, "bsz", "micro_batch", "token_len"), names)
        self._engine(self.release.dataclass_of(section.actor).engine, section.model)
        numbers["update_actor"] = section.actor.ppo_micro_batch_size_per_gpu
        numbers["old_log_prob"] = section.rollout.log_prob_micro_batch_size_per_gpu
        return numbers

    def _engine(self, config: Any, model: Any) -> None:
        if self.is_megatron:
            megatron_ranks(SimpleNamespace(megatron=config), self.gpus)
            return
        init = self.release.function("workers/engine/fsdp/transformer_impl.py:FSDPEngine.__init__")
        removes = bool(model.get("use_remove_padding", False))
        names = {"self": SimpleNamespace(engine_config=config, use_remove_padding=removes)}
        run(refusals(init.body, "use_remove_padding"), names)

    # ------------------------------------------------------------ the rollout

    def rollout(self) -> Numbers:
        section = self.config.actor_rollout_ref
        rollout = self.release.dataclass_of(section.rollout)
        names = {"self": SimpleNamespace(config=section, world_size=self.gpus), "rollout_config": rollout}
        if self.release.has_engines:
            where, word = "workers/engine_workers.py:ActorRolloutRefWorker.init_model", "infer_world_size"
        else:
            file = "megatron_workers" if self.is_megatron else "fsdp_workers"
            where, word = f"workers/{file}.py:ActorRolloutRefWorker._build_rollout", "infer_"
        statements = leading_to(self.release.function(where).body, word, "dp")
        run([one for one in statements if not _makes(one, "rollout_config")], names)
        assert isinstance(names["dp"], int)
        return {"rollout_replicas": names["dp"]}


def _makes(statement: Any, name: str) -> bool:
    return getattr(getattr(statement, "target", None), "id", None) == name
