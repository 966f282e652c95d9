"""Models and cards that the runs are made of: published shapes, and memory as nvidia-smi says it."""

from typing import NamedTuple

GIB = 2**30
MIB = 2**20


class Model(NamedTuple):
    """A transformer. `parameters` are counted with the embeddings."""

    name: str
    parameters: float
    layers: int
    hidden: int
    vocabulary: int


class Card(NamedTuple):
    name: str
    total_bytes: int
    reserved_bytes: int  # kept by the driver

    @property
    def usable_bytes(self) -> int:
        return self.total_bytes - self.reserved_bytes


QWEN_1_5B = Model("Qwen2.5-1.5B", 1.544e9, 28, 1536, 151_936)
QWEN_3B = Model("Qwen2.5-3B", 3.086e9, 36, 2048, 151_936)
QWEN_7B = Model("Qwen2.5-7B", 7.616e9, 28, 3584, 152_064)
LLAMA_8B = Model("Llama-3.1-8B", 8.030e9, 32, 4096, 128_256)

A100 = Card("NVIDIA A100-SXM4-80GB", 81_920 * MIB, 654 * MIB)
H100 = Card("NVIDIA H100 80GB HBM3", 81_559 * MIB, 551 * MIB)
H20 = Card("NVIDIA H20", 97_871 * MIB, 640 * MIB)
