"""Models by the names that people write: a hub's name, a folder, any case, with whatever was appended.

Most shapes were read in a library that mirrors the published config.json files (litgpt's config.py) and held against
another one (torchtune's model builders); `verified` says of which that is true.
"""

import re
from collections.abc import Iterator

from oomwatch.plan.hfconfig import shape_of_hf_config
from oomwatch.plan.shape import Experts, LatentAttention, ModelShape

__all__ = ["ModelShape", "known_shapes", "shape_named", "shape_of_hf_config"]

_MIRRORED = "litgpt config.py, a copy of the published config.json, and torchtune's model builders"
_LITGPT = "litgpt config.py, a copy of the published config.json"
_RECALLED = "from the published model card; its config.json was not opened"
_PRESUMED = "presumed from the base model that it was distilled into"


def _shaped(name: str, sizes: str, vocab: int, source: str, *, tied: bool = False, **more: object) -> ModelShape:
    """A row of the tables below: "layers hidden heads kv_heads head_dim ffn"."""
    layers, hidden, heads, kv_heads, head_dim, ffn = (int(size) for size in sizes.split())
    shape = {"layers": layers, "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    verified = source in (_MIRRORED, _LITGPT)
    rest = {"name": name, "ffn": ffn, "vocab": vocab, "tied": tied, "source": source, "verified": verified}
    return ModelShape(**shape, **rest, **more)  # type: ignore[arg-type]  # the rows are tested


def _qwen2(name: str, sizes: str, vocab: int = 152064, source: str = _MIRRORED, *, tied: bool = False) -> ModelShape:
    return _shaped(name, sizes, vocab, source, tied=tied, qkv_bias=True)


def _sees(name: str, sizes: str, vocab: int, *, tower: int, tied: bool = False) -> ModelShape:
    """Qwen2.5-VL: the text part of that size, and a tower that sees."""
    return _shaped(name, sizes, vocab, _RECALLED, tied=tied, qkv_bias=True, other_parameters=tower)


def _qwen3(name: str, sizes: str, *, tied: bool = False, experts: Experts | None = None) -> ModelShape:
    source = _MIRRORED if experts is None else _LITGPT
    return _shaped(name, sizes, 151936, source, tied=tied, qk_norm=True, experts=experts)


def _gemma(name: str, sizes: str, vocab: int, source: str, *, qk_norm: bool = False) -> ModelShape:
    return _shaped(name, sizes, vocab, source, tied=True, norms_per_layer=4, qk_norm=qk_norm)


_SHAPES = (
    _qwen2("Qwen2.5-0.5B", "24 896 14 2 64 4864", 151936, tied=True),
    _qwen2("Qwen2.5-1.5B", "28 1536 12 2 128 8960", 151936, tied=True),
    _qwen2("Qwen2.5-3B", "36 2048 16 2 128 11008", 151936, tied=True),
    _qwen2("Qwen2.5-7B", "28 3584 28 4 128 18944"),
    _qwen2("Qwen2.5-14B", "48 5120 40 8 128 13824"),
    _qwen2("Qwen2.5-32B", "64 5120 40 8 128 27648"),
    _qwen2("Qwen2.5-72B", "80 8192 64 8 128 29568"),
    _sees("Qwen2.5-VL-3B", "36 2048 16 2 128 11008", 151936, tower=669_000_000, tied=True),
    _sees("Qwen2.5-VL-7B", "28 3584 28 4 128 18944", 152064, tower=677_000_000),
    _sees("Qwen2.5-VL-32B", "64 5120 40 8 128 27648", 152064, tower=689_000_000),
    _sees("Qwen2.5-VL-72B", "80 8192 64 8 128 29568", 152064, tower=704_000_000),
    _qwen3("Qwen3-0.6B", "28 1024 16 8 128 3072", tied=True),
    _qwen3("Qwen3-1.7B", "28 2048 16 8 128 6144", tied=True),
    _qwen3("Qwen3-4B", "36 2560 32 8 128 9728", tied=True),
    _qwen3("Qwen3-8B", "36 4096 32 8 128 12288"),
    _qwen3("Qwen3-14B", "40 5120 40 8 128 17408"),
    _qwen3("Qwen3-32B", "64 5120 64 8 128 25600"),
    _qwen3("Qwen3-30B-A3B", "48 2048 32 4 128 6144", experts=Experts(count=128, per_token=8, ffn=768)),
    _qwen3("Qwen3-235B-A22B", "94 4096 64 4 128 12288", experts=Experts(count=128, per_token=8, ffn=1536)),
    _shaped("Llama-3-8B", "32 4096 32 8 128 14336", 128256, _MIRRORED),
    _shaped("Llama-3-70B", "80 8192 64 8 128 28672", 128256, _MIRRORED),
    _shaped("Llama-3.1-405B", "126 16384 128 8 128 53248", 128256, _RECALLED),
    _shaped("Llama-3.2-1B", "16 2048 32 8 64 8192", 128256, _MIRRORED, tied=True),
    _shaped("Llama-3.2-3B", "28 3072 24 8 128 8192", 128256, _MIRRORED, tied=True),
    _shaped("Llama-2-7B", "32 4096 32 32 128 11008", 32000, _RECALLED),
    _shaped("Llama-2-13B", "40 5120 40 40 128 13824", 32000, _RECALLED),
    _shaped("Llama-2-70B", "80 8192 64 8 128 28672", 32000, _RECALLED),
    _shaped("Gemma-2B", "18 2048 8 1 256 16384", 256000, _RECALLED, tied=True),
    _shaped("Gemma-7B", "28 3072 16 16 256 24576", 256000, _RECALLED, tied=True),
    _gemma("Gemma-2-2B", "26 2304 8 4 256 9216", 256000, _MIRRORED),
    _gemma("Gemma-2-9B", "42 3584 16 8 256 14336", 256000, _MIRRORED),
    _gemma("Gemma-2-27B", "46 4608 32 16 128 36864", 256000, _RECALLED),
    _gemma("Gemma-3-1B", "26 1152 4 1 256 6912", 262144, _RECALLED, qk_norm=True),
    _gemma("Gemma-3-4B", "34 2560 8 4 256 10240", 262208, _RECALLED, qk_norm=True),
    _gemma("Gemma-3-12B", "48 3840 16 8 256 15360", 262208, _RECALLED, qk_norm=True),
    _gemma("Gemma-3-27B", "62 5376 32 16 128 21504", 262208, _RECALLED, qk_norm=True),
    _shaped("Mistral-7B", "32 4096 32 8 128 14336", 32000, _MIRRORED),
    _shaped("Mistral-7B-v0.3", "32 4096 32 8 128 14336", 32768, _MIRRORED),
    _shaped("Ministral-8B", "36 4096 32 8 128 12288", 131072, _RECALLED),
    _shaped("Mistral-Nemo", "40 5120 32 8 128 14336", 131072, _RECALLED),
    _shaped("Mistral-Small-24B", "40 5120 32 8 128 32768", 131072, _RECALLED),
    _shaped(
        "Mixtral-8x7B", "32 4096 32 8 128 14336", 32000, _RECALLED, experts=Experts(count=8, per_token=2, ffn=14336)
    ),
    _shaped(
        "Mixtral-8x22B", "56 6144 48 8 128 16384", 32768, _RECALLED, experts=Experts(count=8, per_token=2, ffn=16384)
    ),
    _shaped("gpt-oss-20b", "24 2880 64 8 64 2880", 201088, _RECALLED, experts=Experts(count=32, per_token=4, ffn=2880)),
    _shaped(
        "gpt-oss-120b", "36 2880 64 8 64 2880", 201088, _RECALLED, experts=Experts(count=128, per_token=4, ffn=2880)
    ),
    _shaped("DeepSeek-R1-Distill-Llama-8B", "32 4096 32 8 128 14336", 128256, _LITGPT),
    _shaped("DeepSeek-R1-Distill-Llama-70B", "80 8192 64 8 128 28672", 128256, _LITGPT),
    _qwen2("DeepSeek-R1-Distill-Qwen-1.5B", "28 1536 12 2 128 8960", 151936, _PRESUMED),
    _qwen2("DeepSeek-R1-Distill-Qwen-7B", "28 3584 28 4 128 18944", 152064, _PRESUMED),
    _qwen2("DeepSeek-R1-Distill-Qwen-14B", "48 5120 40 8 128 13824", 152064, _PRESUMED),
    _qwen2("DeepSeek-R1-Distill-Qwen-32B", "64 5120 40 8 128 27648", 152064, _PRESUMED),
    _shaped("DeepSeek-R1-0528-Qwen3-8B", "36 4096 32 8 128 12288", 151936, _PRESUMED, qk_norm=True),
    _shaped("DeepSeek-LLM-7B", "30 4096 32 32 128 11008", 102400, _RECALLED),
    _shaped("DeepSeek-Coder-6.7B", "32 4096 32 32 128 11008", 32256, _RECALLED),
    _shaped("DeepSeek-Coder-1.3B", "24 2048 16 16 128 5504", 32256, _RECALLED),
    ModelShape(
        name="DeepSeek-V3",
        layers=61,
        hidden=7168,
        heads=128,
        kv_heads=128,
        head_dim=128,
        ffn=18432,
        vocab=129280,
        tied=False,
        experts=Experts(count=256, per_token=8, ffn=2048, shared=1, dense_layers=3),
        latent=LatentAttention(query_rank=1536, kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128),
        source="deepseek-ai/DeepSeek-V3 inference/configs/config_671B.json",
        verified=True,
    ),
)
# Names of models that have the shape of another.
_SAME_SHAPE = {
    "qwen2": "qwen2.5",
    "qwen2.5-math": "qwen2.5",
    "qwen2-math": "qwen2.5",
    "qwen2.5-coder": "qwen2.5",
    "qwq-32b": "qwen2.5-32b",
    "qwen3-coder-30b-a3b": "qwen3-30b-a3b",
    "meta-llama-3": "llama-3",
    "llama-3.1-8b": "llama-3-8b",
    "llama-3.1-70b": "llama-3-70b",
    "llama-3.3-70b": "llama-3-70b",
    "meta-llama-3.1-8b": "llama-3-8b",
    "meta-llama-3.1-70b": "llama-3-70b",
    "mistral-7b-instruct-v0.3": "mistral-7b-v0.3",
    "mistral-small-3.1-24b": "mistral-small-24b",
    "mistral-small-3.2-24b": "mistral-small-24b",
    "gemma-1.1": "gemma",
    "deepseek-math-7b": "deepseek-llm-7b",
    "deepseek-r1": "deepseek-v3",
    "deepseek-v3.1": "deepseek-v3",
}
_BY_NAME = {shape.name.lower(): shape for shape in _SHAPES}
_PART_OF_NAME = re.compile(r"[/\\\s]+|--")


def shape_named(text: str) -> ModelShape | None:
    """The shape of the model that a hub's name or a folder tells of; None where it tells of none that is known.

    "Qwen/Qwen2.5-7B-Instruct", "/models/qwen2.5-7b", "models--Qwen--Qwen2.5-7B/snapshots/...": the last part counts
    that names a model.
    """
    for part in reversed(_PART_OF_NAME.split(text.strip().lower().replace("_", "-"))):
        for name in _spellings(part):
            if name in _BY_NAME:
                return _BY_NAME[name]
    return None


def known_shapes() -> tuple[ModelShape, ...]:
    """All that are known by name, in the order of their families."""
    return _SHAPES


def _spellings(part: str) -> Iterator[str]:
    """The name as it is, then with ever fewer of the words that were appended, and each by the shape it shares."""
    words = part.split("-")
    for count in range(len(words), 0, -1):
        name = "-".join(words[:count])
        yield name
        yield _by_family(name)


def _by_family(name: str) -> str:
    """The name of the model whose shape it has: qwen2-7b as qwen2.5-7b."""
    for alias in sorted(_SAME_SHAPE, key=len, reverse=True):
        if name == alias or name.startswith(alias + "-"):
            return _SAME_SHAPE[alias] + name[len(alias) :]
    return name
