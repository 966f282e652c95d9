"""What no estimate may say, whatever the configuration: that more work needs less, or that more GPUs need more."""

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.memory.test_verl import ACTOR, GRPO, MODEL, REF, ROLLOUT

from oomwatch.plan.memory import Estimate, estimate_of
from oomwatch.plan.memory.kv import bytes_a_token
from oomwatch.plan.memory.workload import Engine
from oomwatch.plan.models import shape_named
from oomwatch.plan.settings import Config
from oomwatch.plan.shape import ModelShape
from oomwatch.plan.verlkeys import releases

GIB = 2**30
MODELS = ("Qwen2.5-0.5B", "Qwen2.5-7B", "Llama-3.1-8B", "Qwen3-30B-A3B", "Gemma-2-9B", "Qwen2.5-72B")
ROUNDING_BYTES = 64  # every part is rounded by itself
FIXED: Config = {**GRPO, f"{ACTOR}.use_dynamic_bsz": False, "algorithm.adv_estimator": "gae"}
SIZES = (f"{ACTOR}.ppo", "critic.ppo", f"{ROLLOUT}.log_prob", f"{REF}.log_prob")
SWITCHES = (
    f"{MODEL}.use_remove_padding",
    f"{MODEL}.enable_gradient_checkpointing",
    f"{MODEL}.use_fused_kernels",
    f"{ACTOR}.fsdp_config.reshard_after_forward",
    f"{ACTOR}.fsdp_config.use_no_sync_for_gradient_accumulation",
    f"{ACTOR}.entropy_from_logits_with_chunking",
    f"{ROLLOUT}.free_cache_engine",
    f"{ROLLOUT}.enforce_eager",
)
OFFLOADS = (
    f"{ACTOR}.fsdp_config.param_offload",
    f"{ACTOR}.fsdp_config.optimizer_offload",
    f"{ACTOR}.fsdp_config.offload_policy",
    f"{REF}.fsdp_config.param_offload",
    f"{MODEL}.enable_activation_offload",
    "critic.fsdp.param_offload",
    "critic.fsdp.optimizer_offload",
    "critic.model.fsdp_config.param_offload",
    "critic.model.fsdp_config.optimizer_offload",
)


def of_batch(size: int) -> Config:
    return {f"{key}_micro_batch_size_per_gpu": size for key in SIZES}


class Case(NamedTuple):
    shape: ModelShape
    version: str
    capacity_bytes: int
    told: Config

    def estimate(self, *changes: Config) -> Estimate:
        told = {
            key: value for change in ({**FIXED, **of_batch(2)}, self.told, *changes) for key, value in change.items()
        }
        return estimate_of(told, self.shape, self.capacity_bytes, version=self.version)


def named(model: str) -> ModelShape:
    shape = shape_named(model)
    assert shape is not None
    return shape


cases = st.builds(
    Case,
    st.sampled_from(MODELS).map(named),
    st.sampled_from(releases()[2:]),
    st.sampled_from([24, 80, 141]).map(lambda size: size * GIB),
    st.dictionaries(st.sampled_from(SWITCHES + OFFLOADS), st.booleans(), max_size=8),
)
few = settings(max_examples=60, deadline=None)


def never_more(less: Estimate, more: Estimate) -> None:
    """In no phase does the first hold more than the second."""
    for phase in less.phases:
        other = more.phase(phase.phase)
        assert other is not None
        assert phase.expected_bytes <= other.expected_bytes + ROUNDING_BYTES, (phase, other)


@given(cases, st.sampled_from([2, 4, 8, 16]))
@few
def test_more_gpus_never_need_more_of_each_under_fsdp(case: Case, gpus: int) -> None:
    many, fewer = ({"trainer.n_gpus_per_node": count} for count in (2 * gpus, gpus))
    never_more(case.estimate(many), case.estimate(fewer))


@given(cases, st.sampled_from([1, 2, 4, 8]))
@few
def test_larger_micro_batches_never_need_less(case: Case, size: int) -> None:
    never_more(case.estimate(of_batch(size)), case.estimate(of_batch(2 * size)))


@given(cases, st.integers(1024, 65536))
@few
def test_larger_token_limits_never_need_less(case: Case, tokens: int) -> None:
    small, large = (
        {
            f"{ACTOR}.use_dynamic_bsz": True,
            f"{ACTOR}.ppo_max_token_len_per_gpu": limit,
            "critic.ppo_max_token_len_per_gpu": limit,
        }
        for limit in (tokens, 2 * tokens)
    )
    never_more(case.estimate(small), case.estimate(large))


@given(cases, st.integers(64, 16384))
@few
def test_longer_sequences_never_need_less(case: Case, tokens: int) -> None:
    never_more(
        case.estimate({"data.max_response_length": tokens}), case.estimate({"data.max_response_length": 2 * tokens})
    )


@given(cases, st.sampled_from(OFFLOADS))
@few
def test_to_offload_never_needs_more_of_the_card(case: Case, key: str) -> None:
    never_more(case.estimate({key: True}), case.estimate({key: False}))


@given(cases)
@few
def test_an_interval_holds_what_is_expected_and_is_no_wider_than_a_fifth_either_way(case: Case) -> None:
    for phase in case.estimate().phases:
        assert phase.low_bytes <= phase.expected_bytes <= phase.high_bytes
        assert phase.high_bytes <= 1.2 * phase.expected_bytes + 1
        assert phase.low_bytes >= 0.8 * phase.expected_bytes - 1


@given(st.sampled_from(MODELS).map(named), st.sampled_from([1, 2, 4, 8]))
def test_a_token_of_the_cache_never_takes_more_where_more_gpus_share_it(shape: ModelShape, tensor: int) -> None:
    alone, shared = (bytes_a_token(Engine(shape=shape, tensor=ways)) for ways in (tensor, 2 * tensor))
    assert 0 < shared <= alone
