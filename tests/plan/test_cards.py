"""Cards by name."""

import pytest

from oomwatch.plan.cards import card_named, known_cards

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "name", "usable_gib"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100 80GB", 79.15),
        ("NVIDIA A100-PCIE-40GB", "A100 40GB", 39.49),
        ("a100-40g", "A100 40GB", 39.49),
        ("NVIDIA H100 80GB HBM3", "H100 80GB", 79.18),
        ("H800", "H100 80GB", 79.18),
        ("A800 80GB", "A100 80GB", 79.15),
        ("NVIDIA H200", "H200 141GB", 139.8),
        ("NVIDIA H20", "H20 96GB", 95.1),
        ("H20-3e", "H20 141GB", 139.8),
        ("NVIDIA GeForce RTX 4090", "RTX 4090", 23.55),
        ("Tesla V100-SXM2-16GB", "V100 16GB", 15.77),
        ("NVIDIA L40S", "L40S", 44.4),
        ("NVIDIA B200", "B200", 178.35),
        ("NVIDIA H100 NVL", "H100 NVL 94GB", 92.98),
        ("NVIDIA GH200 480GB", "GH200 96GB", 94.98),
        ("NVIDIA A100 80GB PCIe", "A100 80GB", 79.15),
        ("Ascend910_9392", "Ascend 910 A3 (one die)", 61.27),
        ("AMD Instinct MI300X OAM", "MI300X", 191.69),
        ("Ascend910B3", "Ascend 910B 64GB", 60.96),
        ("910B", "Ascend 910B 64GB", 60.96),
    ],
)
def test_a_card_is_found_as_nvml_and_people_write_it(text: str, name: str, usable_gib: float) -> None:
    card = card_named(text)
    assert card is not None
    assert (card.name, round(card.usable_bytes / GIB, 2)) == (name, usable_gib)


@pytest.mark.parametrize(
    "text", ["", "GTX 1080", "A100 16GB", "H1000", "card", "910B4", "NVIDIA A100-SXM4-80GB MIG 3g.40gb"]
)
def test_what_is_no_known_card_is_not_guessed(text: str) -> None:
    assert card_named(text) is None


def test_a_program_can_use_less_than_nvml_counts() -> None:
    known = [card for card in known_cards() if card.total_bytes is not None]
    assert known
    assert [card.name for card in known if not 0.95 < card.usable_bytes / (card.total_bytes or 1) < 1] == []


def test_every_card_says_where_its_memory_was_read() -> None:
    assert [card.name for card in known_cards() if not card.source] == []
