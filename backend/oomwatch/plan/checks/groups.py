"""Whether the GPUs can be grouped as the configuration asks."""

from collections.abc import Iterator

from oomwatch.plan.batches import has_critic, has_reference
from oomwatch.plan.groups import MEGATRON_PARALLEL, Groups, engine_ways, gpus_of, groups_of, sequence_parallel
from oomwatch.plan.nearest import divisors
from oomwatch.plan.problem import Problem, error
from oomwatch.plan.reader import Reader
from oomwatch.plan.settings import ACTOR, CRITIC, MODEL, REF, ROLLOUT

ENGINES = ("vllm", "sglang")
ENGINE_SAYS = (
    "When using sequence parallelism (ulysses_sequence_parallel_size > 1), you must enable `use_remove_padding`."
)


def groups_fit(here: Reader) -> Iterator[Problem]:
    """GPUs that share a sequence or a model make whole groups."""
    for section in (ACTOR, *([CRITIC] if has_critic(here) else [])):
        groups = groups_of(here, section)
        gpus, ways = groups.gpus.value, groups.ways.value
        if not gpus or not ways or gpus % ways == 0:
            continue
        if here.strategy == "megatron":
            yield _megatron(here, section, groups)
        else:
            key = f"{section}.ulysses_sequence_parallel_size"
            yield error(key, "sequence_parallel_fits", None, divisors(ways, gpus), gpus=gpus, ways=ways)


def _megatron(here: Reader, section: str, groups: Groups) -> Problem:
    """verl itself looks at the actor's groups, where batches are cut by number; else Megatron refuses."""
    tensor, pipeline, context = (here.number(f"{section}.megatron.{key}") or 1 for key in MEGATRON_PARALLEL)
    gpus = groups.gpus.value or 0
    says = (
        f"n_gpus ({gpus}) must be divisible by model_parallel_size ({tensor * pipeline}) "
        f"times context_parallel_size ({context})"
    )
    looks = section == ACTOR and (not here.since("0.6.0") or not here.is_on(f"{ACTOR}.use_dynamic_bsz"))
    key = f"{section}.megatron.tensor_model_parallel_size"
    valid = tuple(one for one in divisors(tensor, gpus) if gpus % (one * pipeline * context) == 0)
    return error(key, "megatron_fits", says if looks else None, valid, gpus=gpus, ways=tensor * pipeline * context)


def engines_fit(here: Reader) -> Iterator[Problem]:
    """An engine of the rollout holds so many GPUs, and none may be left over."""
    gpus, ways = gpus_of(here).value, engine_ways(here).value
    tensor = here.number(f"{ROLLOUT}.tensor_model_parallel_size")
    if not gpus or not ways or not tensor or gpus % ways == 0:
        return
    name = "infer_world_size" if here.since("0.6.0") else "infer_tp"
    says = f"rollout world_size: {gpus} is not divisible by {name}: {ways}"
    valid = tuple(one for one in divisors(tensor, gpus) if gpus % (ways // tensor * one) == 0)
    yield error(f"{ROLLOUT}.tensor_model_parallel_size", "engines_fit", says, valid, gpus=gpus, ways=ways)


def engine_is_whole(here: Reader) -> Iterator[Problem]:
    """Experts are spread over exactly the GPUs of an engine, and engines have no pipeline (since 0.6)."""
    if not here.since("0.6.0"):
        return
    experts, tensor, data, pipeline = (
        here.number(f"{ROLLOUT}.{key}") or 1
        for key in (
            "expert_parallel_size",
            "tensor_model_parallel_size",
            "data_parallel_size",
            "pipeline_model_parallel_size",
        )
    )
    name = here.value(f"{ROLLOUT}.name")
    if experts > 1 and experts != tensor * data and name != "trtllm":
        says = "expert_parallel_size must be equal to tensor_model_parallel_size * data_parallel_size"
        key = f"{ROLLOUT}.expert_parallel_size"
        yield error(key, "experts_fill_engine", says, (tensor * data, 1), experts=experts, ways=tensor * data)
    if pipeline > 1 and (name in ENGINES or (name == "trtllm" and here.since("0.7.1"))):
        says = f"Current rollout self.name={name!r} not implemented pipeline_model_parallel_size > 1 yet."
        yield error(f"{ROLLOUT}.pipeline_model_parallel_size", "no_engine_pipeline", says, (1,), engine=str(name))


def sharing_removes_padding(here: Reader) -> Iterator[Problem]:
    """GPUs that share a sequence need padding removed (FSDP)."""
    if here.strategy == "megatron" or (not here.since("0.5.0") and here.value(f"{ACTOR}.strategy") == "fsdp2"):
        return
    if not here.is_on(f"{MODEL}.use_remove_padding") and (says := _policy_says(here)):
        yield _keep_no_padding(f"{MODEL}.use_remove_padding", says)
    shares = sequence_parallel(here, CRITIC).value or 1
    if has_critic(here) and shares > 1 and not here.is_on(f"{CRITIC}.model.use_remove_padding"):
        says = "When using sequence parallelism for critic, you must enable `use_remove_padding`."
        yield _keep_no_padding(f"{CRITIC}.model.use_remove_padding", ENGINE_SAYS if here.has_engines else says)


def _policy_says(here: Reader) -> str | None:
    """Of the actor or the reference: who comes upon it first, and how it says so; None where nobody does."""
    actor, ref = (here.number(f"{section}.ulysses_sequence_parallel_size") or 1 for section in (ACTOR, REF))
    if actor > 1 or (ref > 1 and not here.since("0.6.0")):
        return "When using sequence parallelism for actor/ref policy, you must enable `use_remove_padding`."
    engines = [ACTOR, *([REF] if has_reference(here) else [])] if here.has_engines else []
    return ENGINE_SAYS if any((sequence_parallel(here, one).value or 1) > 1 for one in engines) else None


def _keep_no_padding(key: str, says: str) -> Problem:
    return error(key, "sharing_removes_padding", says, suggestion=f"{key}=True")
