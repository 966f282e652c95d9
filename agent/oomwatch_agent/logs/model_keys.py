"""What of a run's models may leave the node: the sizes in their config.json, and the names of public families.

Where a model lies stays here, as does any name of one's own: `/models/acme/qwen2.5-7b-acme-v3` is told as
`qwen2.5-7b`, and a model of no public family by its sizes alone. The sizes are what memory follows from.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeGuard

from oomwatch_agent.logs.config_keys import Values

ACTOR, CRITIC = "actor_rollout_ref.model.path", "critic.model.path"
LARGEST = 10**8  # no size of any model comes near
SIZES = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "num_experts",
    "n_routed_experts",
    "num_local_experts",
    "num_experts_per_tok",
    "n_shared_experts",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "first_k_dense_replace",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "qk_nope_head_dim",
    "v_head_dim",
)
FLAGS = ("tie_word_embeddings", "attention_bias")
_FAMILY = re.compile(
    r"(?:meta|codellama|llama|qwen|qwq|mistral|mixtral|ministral|gemma|deepseek|gpt|phi|olmo|smollm|internlm|glm|yi)"
    r"(?:v?\d+(?:\.\d+)*)?(?:_moe|_vl|_v2|_v3|_text)*",
    re.IGNORECASE,
)
# What may follow a family's name in a public one: versions, sizes and kinds.
_WORD = re.compile(
    r"v?\d+(?:\.\d+)*|(?:\d+x)?\d+(?:\.\d+)?[bm]|a\d+(?:\.\d+)?b|e\d+b|r1|it|hf|vl|llm|oss|moe|pt|instruct|chat|base|math"
    r"|coder|code|distill|zero|lite|nemo|small|large|medium|mini|next|thinking|preview",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\$\{([\w.]+)\}")
_CACHED = re.compile(r"models--[^/\\]*--([^/\\]+)")  # a folder of the Hugging Face cache


class ModelPaths(NamedTuple):
    """Where a run's models are, as its configuration says it: for the agent alone."""

    actor: str | None = None
    critic: str | None = None


def model_paths(config: Mapping[str, object]) -> ModelPaths:
    """Of a nested configuration. A critic that is made of the actor's model has none of its own."""
    actor, critic = _path(config, ACTOR), _path(config, CRITIC)
    return ModelPaths(actor, critic if critic != actor else None)


def public_name(path: str) -> str | None:
    """The public part of the name that a path ends with; None where it is of no public family."""
    cached = _CACHED.search(path)
    last = cached[1] if cached else re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    return "-".join(_public(re.split(r"[-\s]", last))) or None


def told_of(config: Mapping[str, object]) -> Values:
    """The sizes in a decoded config.json, under its own keys; of a model that also sees, those of its text part."""
    nested = config.get("text_config")
    known = {**config, **nested} if isinstance(nested, Mapping) else config
    sizes = {key: value for key in SIZES if _is_size(value := known.get(key))}
    flags = {key: value for key in FLAGS if isinstance(value := known.get(key), bool)}
    kind = known.get("model_type")
    family: Values = {"model_type": kind} if isinstance(kind, str) and _FAMILY.fullmatch(kind) else {}
    return {**sizes, **flags, **family}


def _is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def _public(words: list[str]) -> Iterator[str]:
    """The words up to the first that no public name has."""
    for place, word in enumerate(words):
        if not _FAMILY.fullmatch(word) and (place == 0 or not _WORD.fullmatch(word)):
            return
        yield word


def _path(config: Mapping[str, object], key: str) -> str | None:
    value = _at(config, key)
    if isinstance(value, str) and (reference := _REFERENCE.fullmatch(value)):
        value = _at(config, reference[1])
    return value if isinstance(value, str) and value and "${" not in value and "\0" not in value else None


def _at(config: object, key: str) -> object:
    for name in key.split("."):
        config = config.get(name) if isinstance(config, Mapping) else None
    return config
