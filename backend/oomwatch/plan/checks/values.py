"""Values that verl knows, and those that it does not."""

from collections.abc import Iterator

from oomwatch.plan.batches import has_critic, is_dynamic, phases_of, tokens_key
from oomwatch.plan.checks.kinds import SHARES, usual
from oomwatch.plan.groups import MEGATRON_PARALLEL
from oomwatch.plan.phasekeys import PHASES
from oomwatch.plan.problem import Problem, error, warning
from oomwatch.plan.reader import Reader
from oomwatch.plan.settings import ACTOR, CRITIC, MODEL, ROLLOUT

LOSSES = ("token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm")
RANK_MAX = 512  # of LoRA, in vLLM
PERCENT, LEAST_PERCENT = 100, 10  # a share from 10 to 100 was most likely meant in per cent
# By the release that brought them.
ESTIMATORS = {
    "0.4.0": (
        "gae",
        "grpo",
        "grpo_passk",
        "opo",
        "reinforce_plus_plus",
        "reinforce_plus_plus_baseline",
        "remax",
        "rloo",
    ),
    "0.5.0": ("gpg",),
    "0.6.0": ("grpo_vectorized", "rloo_vectorized"),
    "0.7.1": ("gdpo", "optimal_token_baseline", "tir_optimal_token_baseline"),
}


def loss_is_known(here: Reader) -> Iterator[Problem]:
    known = (*LOSSES, "token-sum") if here.since("0.9.0") else LOSSES
    key = f"{ACTOR}.loss_agg_mode"
    told = here.value(key)
    if told is not None and told not in known:
        says = f"Invalid loss_agg_mode: {told}"
        yield error(key, "loss_is_known", says, suggestion=f"{key}={known[0]}", told=told, known=", ".join(known))


def estimator_is_known(here: Reader) -> Iterator[Problem]:
    """Until 0.5 verl stops without words; from 0.6 in the first step, and programs may bring one of their own."""
    key = "algorithm.adv_estimator"
    told = here.value(key)
    known = [name for release, names in ESTIMATORS.items() if here.since(release) for name in names]
    if told is None or told in known or not here.since("0.4.0"):
        return
    said = ", ".join(known)
    if here.since("0.6.0"):
        says = f"Unknown advantage estimator simply: {told}"
        yield warning(key, "estimator_is_known", says, told=told, known=said)
    else:
        yield error(key, "estimator_is_known", told=told, known=said)


def validation_samples(here: Reader) -> Iterator[Problem]:
    """Sampling with temperature 0 is none."""
    key = f"{ROLLOUT}.temperature"
    told = here.value(key)
    if here.is_on(f"{ROLLOUT}.val_kwargs.do_sample") and isinstance(told, int | float) and told <= 0:
        says = "validation gen temperature should be greater than 0 when enabling do_sample"
        yield error(key, "validation_samples", says, suggestion=f"{ROLLOUT}.val_kwargs.do_sample=False")


def rank_is_possible(here: Reader) -> Iterator[Problem]:
    """vLLM's adapters have a largest rank (verl looks since 0.6.1)."""
    if not here.since("0.6.1") or here.value(f"{ROLLOUT}.name") != "vllm":
        return
    key, rank = f"{MODEL}.lora_rank", here.number(f"{MODEL}.lora_rank") or 0
    says = f"LoRA rank in vLLM must be less than or equal to {RANK_MAX}"
    if here.since("0.7.1"):
        of_megatron = here.number(f"{MODEL}.lora.rank") or 0
        key, rank = (f"{MODEL}.lora.rank", of_megatron) if of_megatron > 0 else (key, rank)
        rank = 0 if here.is_on(f"{MODEL}.lora.merge") else rank
        says = f"lora_rank must be less than or equal to {RANK_MAX}, but got {rank}"
    if rank > RANK_MAX:
        yield error(key, "rank_is_possible", says, (RANK_MAX,), rank=rank, most=RANK_MAX)


def mode_is_there(here: Reader) -> Iterator[Problem]:
    """The rollout within the trainer's own processes is gone since 0.7."""
    key = f"{ROLLOUT}.mode"
    if here.since("0.7.0") and here.value(key) == "sync":
        says = (
            "Rollout mode 'sync' has been removed. Please set `actor_rollout_ref.rollout.mode=async` "
            "or remove the mode setting entirely."
        )
        yield error(key, "mode_is_there", says, suggestion=f"{key}=async")


def turns_have_tools(here: Reader) -> Iterator[Problem]:
    """Several turns want tools, and GRPO (0.4)."""
    if here.since("0.5.0") or not here.is_on(f"{ROLLOUT}.multi_turn.enable"):
        return
    paths = [f"{ROLLOUT}.multi_turn.tool_config_path"]
    said = "tool_config_path"
    if here.since("0.4.1"):
        paths.append(f"{ROLLOUT}.multi_turn.interaction_config_path")
        said = "tool_config_path or interaction_config_path"
    if all(here.value(path) is None for path in paths):
        says = f"{said} must be set when enabling multi_turn with tool, due to no role-playing support"
        yield error(paths[0], "turns_have_tools", says)
    if here.value("algorithm.adv_estimator") != "grpo":
        key = "algorithm.adv_estimator"
        yield error(key, "turns_want_grpo", "only GRPO is tested for multi-turn with tool", suggestion=f"{key}=grpo")


def counts_are_positive(here: Reader) -> Iterator[Problem]:
    """verl divides by these, or has nothing to do without them."""
    for key in dict.fromkeys(_counts(here)):
        told = here.value(key)
        if isinstance(told, int) and not isinstance(told, bool) and told < 1:
            instead = usual(here, key) or 1
            yield error(key, "counts_are_positive", suggestion=f"{key}={instead}", setting=key, told=told, least=1)


def _counts(here: Reader) -> Iterator[str]:
    """All counts that a run of this kind works with."""
    yield from ("data.train_batch_size", "data.max_prompt_length", "data.max_response_length")
    yield from ("trainer.nnodes", "trainer.n_gpus_per_node", f"{ROLLOUT}.n", f"{ROLLOUT}.agent.num_workers")
    yield from (f"{ROLLOUT}.{way}_parallel_size" for way in ("tensor_model", "data", "pipeline_model", "expert"))
    yield from (f"{ROLLOUT}.max_num_seqs", f"{ROLLOUT}.max_num_batched_tokens")
    yield f"{ACTOR}.ppo_micro_batch_size_per_gpu"
    for section in (ACTOR, *([CRITIC] if has_critic(here) else [])):
        yield from (f"{section}.ppo_mini_batch_size", f"{section}.ppo_epochs")
        if here.strategy == "megatron":
            yield from (f"{section}.megatron.{way}" for way in MEGATRON_PARALLEL)
        else:
            yield f"{section}.ulysses_sequence_parallel_size"
    for phase in phases_of(here):
        keys = PHASES[phase]
        cut = (tokens_key(here, phase),) if is_dynamic(here, phase) else (*keys.sequences, keys.sequences_of_all)
        yield from cut


def shares_are_possible(here: Reader) -> Iterator[Problem]:
    """A share of a card is more than nothing and at most all of it; a part that is offloaded may be nothing."""
    for key, told in here.config.items():
        if not key.endswith(SHARES) or isinstance(told, bool) or not isinstance(told, int | float):
            continue
        may_be_none = key.endswith("_fraction")
        if not (0 < told <= 1 or (told == 0 and may_be_none)):
            least = "[0, 1]" if may_be_none else "(0, 1]"
            instead = told / PERCENT if LEAST_PERCENT <= told <= PERCENT else usual(here, key)
            suggestion = None if instead is None else f"{key}={instead}"
            yield error(key, "share_is_possible", suggestion=suggestion, setting=key, told=told, within=least)
