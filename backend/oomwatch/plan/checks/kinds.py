"""Values of another kind than verl takes: it stops with them, or counts on with nonsense.

What is wanted shows in the default of a setting; of what the arithmetic and the estimate count with there are tables.
Settings of a critic or a reference that a run has not are nobody's concern.
"""

import functools
import math
from collections.abc import Iterator
from typing import Literal

import msgspec

from oomwatch import wire
from oomwatch.plan.batches import has_critic, has_reference
from oomwatch.plan.defaults import told
from oomwatch.plan.problem import Problem, error, warning
from oomwatch.plan.reader import Reader
from oomwatch.plan.settings import ACTOR, CRITIC, MODEL, REF, ROLLOUT
from oomwatch.plan.verlkeys import Strategy, takes

Kind = Literal["whole", "number", "switch"]
# verl multiplies, divides or compares with these, so that null stops it too.
NEVER_NULL = frozenset(
    {
        "data.train_batch_size",
        "data.max_prompt_length",
        "data.max_response_length",
        "trainer.nnodes",
        "trainer.n_gpus_per_node",
        f"{ROLLOUT}.n",
        f"{ROLLOUT}.tensor_model_parallel_size",
        f"{ROLLOUT}.gpu_memory_utilization",
        f"{MODEL}.lora_rank",
        *(f"{one}.{name}" for one in (ACTOR, CRITIC) for name in ("ppo_mini_batch_size", "ppo_epochs")),
        *(f"{one}.ulysses_sequence_parallel_size" for one in (ACTOR, CRITIC)),
        *(
            f"{one}.megatron.{name}_parallel_size"
            for one in (ACTOR, CRITIC)
            for name in ("tensor_model", "pipeline_model", "context")
        ),
    }
)
# Ends of the keys of whole numbers, whatever their default is: most are null.
_WHOLE = (
    "_batch_size",
    "_batch_size_per_gpu",
    "_parallel_size",
    "token_len_per_gpu",
    ".fsdp_size",
    ".lora_rank",
    ".max_num_batched_tokens",
    ".max_num_seqs",
    ".max_prompt_length",
    ".max_response_length",
    ".n_gpus_per_node",
    ".nnodes",
    ".num_workers",
    ".ppo_epochs",
    ".response_length",
    ".rollout.n",
    "_bucket_megabytes",
)
SHARES = (".gpu_memory_utilization", ".mem_fraction_static", ".optimizer_offload_fraction")
_SWITCHES = (
    ".calculate_entropy",
    ".enable_gradient_checkpointing",
    ".enforce_eager",
    ".entropy_from_logits_with_chunking",
    ".free_cache_engine",
    ".multi_stage_wake_up",
    ".offload_policy",
    ".optimizer_offload",
    ".param_offload",
    ".sequence_parallel",
    ".use_distributed_optimizer",
    "use_dynamic_bsz",
    ".use_fused_kernels",
    ".use_kl_in_reward",
    ".use_kl_loss",
    ".use_remove_padding",
    ".use_torch_compile",
)
_OFF = ("0", "0.0", "none", "false", "off", "no", "n")
_COUNTED = (*_WHOLE, *SHARES, *_SWITCHES)
_OF_VALUES = (
    "counts_are_positive",
    "number_is_wanted",
    "share_is_possible",
    "switch_is_wanted",
    "whole_is_wanted",
)


def unsettles(problem: Problem) -> bool:
    """Whether nothing can be estimated with it: a value that the estimate would count with is none."""
    return problem.check in _OF_VALUES and problem.key.endswith(_COUNTED)


def kinds_are_right(here: Reader) -> Iterator[Problem]:
    """Texts that name a variable are left alone: nobody knows what the shell makes of them."""
    strategy = here.strategy
    for key, value in here.config.items():
        if isinstance(value, str) and "$" in value:
            continue
        kind = _kind_of(key, here.release, strategy)
        if kind is not None and not _is_of(kind, value) and _is_used(here, key) and not _follows(here, key):
            yield from _problem(here, key, value, kind)


def usual(here: Reader, key: str) -> int | float | None:
    """verl's own value, where it is a number."""
    found = told({}, key, here.release, here.strategy).value
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


@functools.lru_cache(maxsize=8192)
def _kind_of(key: str, release: str, strategy: Strategy) -> Kind | None:
    """None where anything may stand, or where the release has no such setting."""
    default = told({}, key, release, strategy).value
    if isinstance(default, bool):
        return "switch"
    if key.endswith(_WHOLE) and takes(key, release, strategy):
        return "whole"
    return "number" if isinstance(default, int | float) or key.endswith(SHARES) else None


def _is_used(here: Reader, key: str) -> bool:
    """Whether a run has the worker that a setting is of."""
    if key.startswith(f"{CRITIC}."):
        return has_critic(here)
    return not key.startswith(f"{REF}.") or has_reference(here)


def _follows(here: Reader, key: str) -> bool:
    """Whether a setting only has what another one has, which is told of by itself."""
    rest = {one: value for one, value in here.config.items() if one != key}
    other = told(rest, key, here.release, here.strategy)
    return not other.is_assumed and other.key != key and other.value == here.config[key]


def _is_of(kind: Kind, value: wire.ConfigValue | None) -> bool:
    if kind == "switch" or isinstance(value, bool):
        return kind == "switch" and isinstance(value, bool)
    return isinstance(value, int if kind == "whole" else int | float)


def _problem(here: Reader, key: str, value: wire.ConfigValue | None, kind: Kind) -> Iterator[Problem]:
    said = msgspec.json.encode(value).decode()
    if value is None and (key not in NEVER_NULL or usual(here, key) is None):
        return
    if kind == "switch":
        instead: bool | int | float | None = str(value).lower() not in _OFF
        found = error(
            key, "switch_is_wanted", None, (), f"{key}={instead}", setting=key, told=said, taken=_taken(value)
        )
        stops = isinstance(value, str) and key.endswith(_SWITCHES)
        yield found if stops else msgspec.structs.replace(found, severity="warning")
    elif isinstance(value, bool) and not key.endswith(_COUNTED):
        yield warning(key, "number_is_wanted", setting=key, told=said)  # it counts as 0 or 1: some write so for "never"
    else:
        meant = _meant(value, kind)
        instead = usual(here, key) if meant is None else meant
        suggestion = None if instead is None else f"{key}={instead}"
        yield error(key, f"{kind}_is_wanted", suggestion=suggestion, setting=key, told=said)


def _taken(value: wire.ConfigValue | None) -> str:
    """What Python's truth makes of it: of a text always true, "false" and "off" too."""
    return "true" if value else "false"


def _meant(value: wire.ConfigValue | None, kind: Kind) -> int | float | None:
    """The number above 0 that stands in a text, or that a fraction is nearest to."""
    try:
        number = float(value) if isinstance(value, str | float) else 0.0
    except ValueError:
        return None
    if not 0 < number < math.inf:
        return None
    return max(1, round(number)) if kind == "whole" or number.is_integer() else number
