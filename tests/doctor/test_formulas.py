"""A formula in Chinese: the arithmetic as it is, and no English word."""

import re
from pathlib import Path

import pytest

import oomwatch.plan.memory
from oomwatch.catalogue import entries
from oomwatch.doctor.formulas import formula_in

SOURCES = [path.read_text(encoding="utf-8") for path in Path(oomwatch.plan.memory.__file__).parent.glob("*.py")]
EVERYBODYS = {"GiB", "token", "NCCL"}


def written() -> list[str]:
    """Every line that says what a formula is, its numbers left out."""
    lines = [line for source in SOURCES for line in source.splitlines()]
    told = [line for line in lines if re.search(r'f"[^"]* x |GiB', line) and not line.lstrip().startswith("#")]
    texts = [text for line in told for text in re.findall(r'f"([^"]*)"', line)]
    return [re.sub(r"\{[^}]*\}", "7", text) for text in texts if " " in text]


@pytest.mark.parametrize("formula", sorted(set(written())))
def test_every_word_of_a_formula_has_its_chinese(formula: str) -> None:
    said = formula_in("zh", formula)
    assert set(re.findall(r"[A-Za-z]{2,}", said.replace("GPU", ""))) <= EVERYBODYS
    assert formula_in("en", formula) == formula


def test_no_word_of_formulas_is_left_over() -> None:
    words = [said["en"] for key, said in entries().items() if key.startswith("plan.factor.")]
    assert [word for word in words if not any(word in source for source in SOURCES)] == []


def test_the_numbers_stay_as_they_are() -> None:
    assert formula_in("zh", "8 bytes x 1.85 G that learn on this GPU") == "8 字节 x 1.85 G（本 GPU 上训练的参数）"
    assert formula_in("zh", "1.9 GiB a process with NCCL") == "1.9 GiB（每个进程）（含 NCCL）"
    assert formula_in("zh", "2 bytes x 9.4 G, not divided again after the forward pass").endswith("，前向之后不再切分")
