"""The first step of a run, as far as it is arithmetic: how a batch is dealt to ranks and cut, by verl's assertions."""

import math
from types import SimpleNamespace
from typing import Any

from tests.plan.verlrun.excerpts import refusals, run
from tests.plan.verlrun.workers import Numbers, Workers, megatron_ranks


class Step:
    def __init__(self, workers: Workers, numbers: Numbers, *, has_critic: bool, has_reference: bool) -> None:
        self.workers, self.numbers = workers, numbers
        self.has_critic, self.has_reference = has_critic, has_reference
        self.release, self.config = workers.release, workers.config
        self.section = self.config.actor_rollout_ref
        self.prompts = self.config.data.train_batch_size
        self.sequences = self.prompts * self.section.rollout.n
        self.longest = self.config.data.max_prompt_length + self.config.data.max_response_length

    def first(self) -> Numbers:
        return self.of_engines() if self.release.has_engines else self.of_workers()

    # ------------------------------------------------------------ 0.4 to 0.7

    def of_workers(self) -> Numbers:
        self.generate()
        ranks, ways = self.ranks(self.section.actor, self.workers.gpus)
        dealt = ranks if self.release.minor >= 6 or self.workers.is_megatron else self.workers.gpus
        if self.config.trainer.balance_batch:
            self.balance(ranks if self.release.minor >= 7 else self.workers.gpus)
        self.deal(self.sequences, dealt)
        if self.section.rollout.log_prob_use_dynamic_bsz:
            self.tokens(self.section.rollout.log_prob_max_token_len_per_gpu, ways)
        if self.has_reference and self.section.ref.log_prob_use_dynamic_bsz:
            self.tokens(self.section.ref.log_prob_max_token_len_per_gpu, ways)
        if self.has_critic:
            self.critic()
        if self.workers.is_megatron:
            self.iterate("protocol.py:DataProto.make_iterator", self.numbers["ppo_mini_batch_size_per_gpu"], ranks)
        if self.section.actor.use_dynamic_bsz:
            self.tokens(self.section.actor.ppo_max_token_len_per_gpu, ways)
        return {}

    def critic(self) -> None:
        critic = self.config.critic
        ranks, ways = self.ranks(critic, self.workers.gpus)
        if self.release.minor >= 6 or self.workers.is_megatron:
            self.deal(self.sequences, ranks)
        if critic.use_dynamic_bsz:
            self.tokens(critic.forward_max_token_len_per_gpu, ways)
        if self.workers.is_megatron:
            mini = self.numbers["critic_ppo_mini_batch_size_per_gpu"]
            self.iterate("protocol.py:DataProto.make_iterator", mini, ranks)
        if critic.use_dynamic_bsz:
            self.tokens(critic.ppo_max_token_len_per_gpu, ways)

    def generate(self) -> None:
        rollout = self.section.rollout
        if rollout.mode == "async":
            if self.release.minor >= 5:
                self.deal(self.sequences, rollout.agent.num_workers)
        elif self.release.minor >= 6:
            self.deal(self.sequences, self.numbers["rollout_replicas"])
        else:
            self.deal(self.sequences if self.release.minor == 5 else self.prompts, self.workers.gpus)

    def ranks(self, section: Any, gpus: int) -> tuple[int, int]:
        """Ranks with different data, and how many GPUs share a sequence."""
        if self.workers.is_megatron:
            return megatron_ranks(section, gpus), section.megatron.context_parallel_size
        ways = section.get("ulysses_sequence_parallel_size", 1)
        return gpus // ways, ways

    # ------------------------------------------------------------ 0.8 and later

    def of_engines(self) -> Numbers:
        pads = self.release.minor >= 9 and self.config.trainer.use_v1
        ranks = self.engine_ranks(self.section.actor)
        sequences = self.padded(ranks) if pads else self.sequences
        if not pads:
            self.deal(sequences, self.section.rollout.agent.num_workers)
            if self.config.trainer.balance_batch:
                self.balance(ranks)
            self.deal(sequences, ranks, tensors=True)
        each = sequences // ranks
        numbers: Numbers = {"log_prob_passes": self.cut(each, self.numbers["old_log_prob"], self.section.actor)}
        if self.has_reference:
            dynamic = self.section.ref.use_dynamic_bsz
            self.cut(each, self.numbers["ref"], SimpleNamespace(use_dynamic_bsz=dynamic))
        if self.has_critic:
            critics = self.engine_ranks(self.config.critic)
            if not pads:
                self.deal(sequences, critics, tensors=True)
            self.mini_batch(self.config.critic, critics, sequences)
        mini = self.mini_batch(self.section.actor, ranks, sequences)
        numbers["ppo_mini_batch_size_per_gpu"] = mini
        numbers["micro_batches_per_update"] = self.cut(mini, self.numbers["update_actor"], self.section.actor)
        return numbers

    def engine_ranks(self, section: Any) -> int:
        engine = self.release.dataclass_of(section).engine
        if self.workers.is_megatron:
            return megatron_ranks(SimpleNamespace(megatron=engine), self.workers.gpus)
        return int(self.workers.gpus // engine.ulysses_sequence_parallel_size)

    def padded(self, ranks: int) -> int:
        """The newest trainer fills the batch up, to whole mini batches of all."""
        trainer = SimpleNamespace(config=self.config, use_critic=self.has_critic, global_steps=1)
        names: dict[str, Any] = {"math": math}
        run([self.release.function("trainer/ppo/v1/trainer_base.py:PPOTrainer._get_required_batch_multiple")], names)
        multiple = names["_get_required_batch_multiple"](trainer, ranks)
        return int(math.ceil(self.sequences / multiple) * multiple)

    def mini_batch(self, section: Any, ranks: int, sequences: int) -> int:
        body = self.release.function("workers/engine_workers.py:TrainingWorker.train_mini_batch").body
        engine = SimpleNamespace(get_data_parallel_size=lambda: ranks)
        mini = section.ppo_mini_batch_size * self.section.rollout.n
        names = {"self": SimpleNamespace(engine=engine), "mini_batch_size": mini, "num_mini_batch": None}
        run(refusals(body, "mini_batch_size %"), names)
        self.iterate("utils/tensordict_utils.py:make_iterator", mini // ranks, ranks, sequences)
        return int(mini // ranks)

    def cut(self, each: int, micro: int | None, section: Any) -> int | None:
        """The passes of a batch, where they are cut by number."""
        data = _Batch(each, {"micro_batch_size_per_gpu": micro, "max_token_len_per_gpu": self.longest})
        told = {"use_dynamic_bsz": section.use_dynamic_bsz, "sp_size": 1, "force_group_size": 1}
        tools = SimpleNamespace(
            get_non_tensor_data=lambda data, key, default: told[key],  # noqa: ARG005 - called by name
            chunk_tensordict=lambda _data, chunks: [None] * chunks,
        )
        names: dict[str, Any] = {"tu": tools, "TensorDict": object}
        names["rearrange_micro_batches"] = lambda *_args, **_kwargs: ([], [])
        run([self.release.function("workers/engine/utils.py:prepare_micro_batches")], names)
        passes, _ = names["prepare_micro_batches"](data)
        return len(passes) or None

    # ------------------------------------------------------------ verl's own assertions

    def deal(self, sequences: int, chunks: int | None, *, tensors: bool = False) -> None:
        if tensors:
            body = self.release.function("utils/tensordict_utils.py:chunk_tensordict").body
            run(refusals(body, "chunks"), {"td": _Batch(sequences), "chunks": chunks, "TensorDict": _Batch})
            return
        body = self.release.function("protocol.py:DataProto.chunk").body
        run(refusals(body, "chunks"), {"self": _Batch(sequences), "chunks": chunks})

    def balance(self, ranks: int) -> None:
        names = {"seqlen_list": range(self.sequences), "k_partitions": ranks, "equal_size": True}
        for name in ("get_seqlen_balanced_partitions", "karmarkar_karp"):
            body = self.release.function(f"utils/seqlen_balancing.py:{name}").body
            run([one for one in refusals(body, "len(seqlen_list)") if "partition)" not in repr(one)], names)

    def iterate(self, where: str, mini: int | None, ranks: int, sequences: int | None = None) -> None:
        batch = _Batch((sequences or self.sequences) // ranks)
        names = {"self": SimpleNamespace(batch=batch), "tensordict": batch, "mini_batch_size": mini}
        run(refusals(self.release.function(where).body, "% mini_batch_size"), names)

    def tokens(self, most: int, ways: int) -> None:
        body = self.release.function("utils/seqlen_balancing.py:rearrange_micro_batches").body
        run(refusals(body, "max_token_len >="), {"max_token_len": most * ways, "max_seq_len": self.longest})


class _Batch(dict[str, Any]):
    """So many sequences, as a DataProto or a TensorDict tells it."""

    def __init__(self, sequences: int, told: dict[str, Any] | None = None) -> None:
        super().__init__(told or {})
        self.sequences = sequences
        self.batch_size = (sequences,)

    def __len__(self) -> int:
        return self.sequences

    def is_padding_enabled(self) -> bool:
        return False
