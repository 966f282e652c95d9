"""A Hugging Face config.json as the shape of a model."""

from collections.abc import Mapping

from oomwatch.plan.shape import Experts, LatentAttention, ModelShape

_LARGEST = 10**8  # no size of any model comes near; it keeps absurd input from becoming absurd memory
_EXPERT_COUNTS = ("num_experts", "n_routed_experts", "num_local_experts")


def shape_of_hf_config(config: Mapping[str, object]) -> ModelShape:
    """The shape that a decoded config.json describes; of a model that also sees, its text part.

    Raises ValueError that names the key and what to do.
    """
    nested = config.get("text_config")
    text: Mapping[str, object] = {**nested} if isinstance(nested, Mapping) else config
    kind = str(text.get("model_type", config.get("model_type", "")))
    heads = _size(text, "num_attention_heads")
    hidden = _size(text, "hidden_size")
    return ModelShape(
        name=str(config.get("_name_or_path") or kind or "config.json"),
        layers=_size(text, "num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=_size(text, "num_key_value_heads", heads),
        head_dim=_size(text, "head_dim", max(1, hidden // heads)),
        ffn=_size(text, "intermediate_size"),
        vocab=_size(text, "vocab_size"),
        tied=_tied(config, text, kind),
        qkv_bias=kind.startswith("qwen2") or text.get("attention_bias") is True,
        qk_norm=kind.startswith(("qwen3", "gemma3")),
        norms_per_layer=4 if kind.startswith(("gemma2", "gemma3")) else 2,
        experts=_experts(text),
        latent=_latent(text),
        source="config.json",
        verified=True,
    )


def _size(config: Mapping[str, object], key: str, otherwise: int | None = None) -> int:
    value = config.get(key)
    if value is None and otherwise is not None:
        return otherwise
    if value is None:
        raise ValueError(f'config.json has no "{key}": give the config.json of a decoder, as its model folder holds it')
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _LARGEST:
        raise ValueError(f'config.json: "{key}" is {str(value)[:40]!r}; a whole number above 0 is expected')
    return value


def _tied(config: Mapping[str, object], text: Mapping[str, object], kind: str) -> bool:
    """Whether the head is the embedding. A file that does not say it leaves it to its family: Gemma ties."""
    told = text.get("tie_word_embeddings", config.get("tie_word_embeddings"))
    return told if isinstance(told, bool) else kind.startswith("gemma")


def _experts(text: Mapping[str, object]) -> Experts | None:
    key = next((key for key in _EXPERT_COUNTS if text.get(key)), None)
    if key is None:
        return None
    width = _size(text, "moe_intermediate_size", _size(text, "intermediate_size"))
    shared_width = text.get("shared_expert_intermediate_size")
    shared = _size(text, "shared_expert_intermediate_size") // width if shared_width else 0
    return Experts(
        count=_size(text, key),
        per_token=_size(text, "num_experts_per_tok"),
        ffn=width,
        shared=_size(text, "n_shared_experts") if text.get("n_shared_experts") else shared,
        dense_layers=_size(text, "first_k_dense_replace") if text.get("first_k_dense_replace") else 0,
    )


def _latent(text: Mapping[str, object]) -> LatentAttention | None:
    if not text.get("kv_lora_rank"):
        return None
    return LatentAttention(
        query_rank=_size(text, "q_lora_rank") if text.get("q_lora_rank") else 0,
        kv_rank=_size(text, "kv_lora_rank"),
        rope_dim=_size(text, "qk_rope_head_dim"),
        nope_dim=_size(text, "qk_nope_head_dim"),
        value_dim=_size(text, "v_head_dim"),
    )
