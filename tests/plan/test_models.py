"""Models by name and by config.json."""

from typing import Any

import pytest

from oomwatch.plan.models import known_shapes, shape_named, shape_of_hf_config

QWEN_7B: dict[str, Any] = {
    "model_type": "qwen2",
    "num_hidden_layers": 28,
    "hidden_size": 3584,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "intermediate_size": 18944,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
}
# Parameters as published model cards and trainers' own logs print them, in billions.
PUBLISHED = {
    "Qwen2.5-0.5B": 0.494,
    "Qwen2.5-1.5B": 1.544,
    "Qwen2.5-7B": 7.616,
    "Qwen2.5-72B": 72.706,
    "Qwen2.5-VL-7B": 8.293,
    "Qwen3-4B": 4.022,
    "Qwen3-30B-A3B": 30.532,
    "Qwen3-235B-A22B": 235.094,
    "Llama-3-8B": 8.030,
    "Llama-3-70B": 70.554,
    "Llama-3.2-1B": 1.236,
    "Gemma-2-2B": 2.614,
    "Gemma-2-9B": 9.242,
    "Mistral-7B": 7.242,
    "DeepSeek-V3": 671.026,
    "Mixtral-8x7B": 46.703,
    "Mixtral-8x22B": 140.630,
    "Gemma-7B": 8.538,
    "Gemma-3-27B": 27.009,
    "Ministral-8B": 8.020,
    "gpt-oss-20b": 20.9,
    "gpt-oss-120b": 116.8,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_parameters_that_a_shape_has_are_those_that_are_published(name: str) -> None:
    shape = shape_named(name)
    assert shape is not None
    assert shape.parameters / 1e9 == pytest.approx(PUBLISHED[name], rel=0.001)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B"),
        ("/data/models/qwen2.5-7b/", "Qwen2.5-7B"),
        ("Qwen/Qwen2-7B", "Qwen2.5-7B"),
        ("models--Qwen--Qwen2.5-Math-1.5B/snapshots/4a83ca6e4526", "Qwen2.5-1.5B"),
        ("Qwen/QwQ-32B", "Qwen2.5-32B"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-7B"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen3-30B-A3B"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "Llama-3-8B"),
        ("google/gemma-2-9b-it", "Gemma-2-9B"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "Mistral-7B-v0.3"),
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", "Mistral-Small-24B"),
        ("deepseek-ai/deepseek-math-7b-instruct", "DeepSeek-LLM-7B"),
        ("google/gemma-1.1-7b-it", "Gemma-7B"),
        ("deepseek-ai/DeepSeek-R1", "DeepSeek-V3"),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "DeepSeek-R1-Distill-Qwen-7B"),
        ("/runs/llama-3-8b/checkpoints/step-200", "Llama-3-8B"),
    ],
)
def test_a_model_is_found_however_it_is_written(text: str, name: str) -> None:
    shape = shape_named(text)
    assert shape is not None
    assert shape.name == name


@pytest.mark.parametrize("text", ["", "/", "my-own-model", "Qwen/Qwen3-VL-7B", "Qwen/Qwen2.5-9B", "gpt2"])
def test_what_is_not_known_is_not_guessed(text: str) -> None:
    assert shape_named(text) is None


def test_every_known_shape_says_where_it_was_read() -> None:
    assert [shape.name for shape in known_shapes() if not shape.source] == []
    assert len({shape.name for shape in known_shapes()}) == len(known_shapes())


def test_a_config_json_gives_the_same_shape_as_the_name() -> None:
    known = shape_named("Qwen2.5-7B")
    assert known is not None
    assert shape_of_hf_config(QWEN_7B).parameters == known.parameters


def test_a_config_json_of_deepseek_gives_experts_and_latent_attention() -> None:
    config = {
        "model_type": "deepseek_v3",
        "num_hidden_layers": 61,
        "hidden_size": 7168,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "intermediate_size": 18432,
        "vocab_size": 129280,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "first_k_dense_replace": 3,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
    }
    shape, known = shape_of_hf_config(config), shape_named("DeepSeek-V3")
    assert known is not None
    assert shape.parameters == known.parameters
    assert shape.kv_numbers_per_token(8) == 61 * (512 + 64)


def test_of_a_model_that_sees_the_text_part_counts() -> None:
    shape = shape_of_hf_config({"model_type": "qwen2_5_vl", "text_config": QWEN_7B})
    assert shape.layers == 28


@pytest.mark.parametrize("value", [None, "many", 0, -3, 1.5, True, 10**9])
def test_a_broken_config_json_is_refused_by_the_name_of_its_key(value: object) -> None:
    with pytest.raises(ValueError, match="num_hidden_layers"):
        shape_of_hf_config({**QWEN_7B, "num_hidden_layers": value})


def test_the_cache_of_a_token_is_divided_among_heads_but_never_below_one() -> None:
    shape = shape_named("Qwen2.5-7B")
    assert shape is not None
    assert shape.kv_numbers_per_token() == 2 * 28 * 4 * 128
    assert shape.kv_numbers_per_token(8) == 2 * 28 * 128
