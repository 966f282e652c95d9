"""Cards by name, with what NVML and torch say of their memory.

What a program can use is less than what is printed on the box: NVML's total holds what the driver keeps, and torch's
"total capacity" is what is left. Engines take their share of torch's figure.
"""

import re
from collections.abc import Mapping

from msgspec import Struct

from oomwatch.units import parse_quantity

_MIB, _GIB = 2**20, 2**30
_SMALLEST_BYTES, _LARGEST_BYTES = _GIB, 2**50  # of what a card may be told to have: others are slips of the unit
# Where no program's own figure was found for a card: NVML's total less what the driver keeps on the cards of which both
# are known (0.40 to 0.86 GiB, the median of nine).
_KEPT_BY_DRIVER_BYTES = 0.6 * _GIB


class Card(Struct, frozen=True, kw_only=True):
    name: str
    total_bytes: int | None  # NVML's; None: no log that names the card was found
    usable_bytes: int  # torch's "total capacity"
    source: str
    verified: bool = True  # whether usable_bytes was read; else it is worked out from NVML's total


def _card(name: str, total_mib: int | None, usable_gib: float | None, source: str) -> Card:
    """A row of the table below; one of the two figures may be missing."""
    total = total_mib * _MIB if total_mib is not None else None
    if usable_gib is not None:
        return Card(name=name, total_bytes=total, usable_bytes=round(usable_gib * _GIB), source=source)
    return card_of_total(name, total or 0, source)


def card_of_total(name: str, total_bytes: int, source: str) -> Card:
    """A card of which no program's own figure is known: NVML's total less what the driver keeps."""
    usable = round(total_bytes - _KEPT_BY_DRIVER_BYTES)
    return Card(name=name, total_bytes=total_bytes, usable_bytes=usable, source=source, verified=False)


_PUBLIC_LOG = "a public log that names the card"
_V100 = {
    16: _card("V100 16GB", None, 15.77, "llama-cookbook #234"),
    32: _card("V100 32GB", None, 31.74, "QwenLM/Qwen #916"),
}
_A100 = {
    40: _card("A100 40GB", None, 39.49, _PUBLIC_LOG),
    80: _card("A100 80GB", 81920, 79.15, "TRL #3456; litgpt oom.md"),
}
_H100 = {
    80: _card("H100 80GB", 81559, 79.18, "slime #1767; vllm #10511; llm-d"),
    94: _card("H100 NVL 94GB", 95830, None, "NVML's total by nvidia-smi; no program's own figure found"),
    96: _card("H100 96GB", 97871, None, "taken to be as GH200 96GB; no log that names it found"),
}
_H20 = {96: _card("H20 96GB", 97871, 95.1, _PUBLIC_LOG), 141: _card("H20 141GB", 143771, 139.8, "taken to be as H200")}
_GH200 = _card("GH200 96GB", 97871, None, _PUBLIC_LOG)
_GB200 = _card("GB200", 189471, None, _PUBLIC_LOG)
_A6000 = _card("RTX A6000", 49140, None, _PUBLIC_LOG)
# Which names mean which card: the pattern of the family, its sizes in GB, and which of them where none is told.
_FAMILIES: tuple[tuple[str, Mapping[int, Card], int], ...] = (
    (r"v100", _V100, 32),
    (r"[ah]100x?-?40", _A100, 40),
    (r"a[18]00", _A100, 80),
    (r"h100-nvl", {94: _H100[94]}, 94),
    (r"h[18]00", _H100, 80),
    (r"gb200", {186: _GB200}, 186),
    (r"gh200", {96: _GH200, 480: _GH200}, 96),  # its name tells the host's memory: "GH200 480GB"
    (r"h200", {141: _card("H200 141GB", 143771, 139.8, "slime #1022")}, 141),
    (r"h20-?3e", {141: _H20[141]}, 141),
    (r"h20", _H20, 96),
    (r"b300", {288: _card("B300", None, 275.0, _PUBLIC_LOG)}, 288),
    (r"b200", {180: _card("B200", 183359, 178.35, _PUBLIC_LOG)}, 180),
    (r"l40s?", {48: _card("L40S", 46068, 44.4, _PUBLIC_LOG)}, 48),
    (r"l20", {48: _card("L20", 46068, None, _PUBLIC_LOG)}, 48),
    (r"l4", {24: _card("L4", 23034, None, _PUBLIC_LOG)}, 24),
    (r"a10g?", {24: _card("A10", None, 21.99, "verl #1141")}, 24),
    (r"rtx-?6000-ada(-generation)?", {48: _card("RTX 6000 Ada", 49140, None, _PUBLIC_LOG)}, 48),
    (r"(rtx-?)?a6000", {48: _A6000}, 48),
    (r"(rtx-?)?5090", {32: _card("RTX 5090", 32607, 31.36, "LightningSearch-RL docs")}, 32),
    (r"(rtx-?)?4090d?", {24: _card("RTX 4090", 24564, 23.55, "vllm #7553")}, 24),
    (r"(rtx-?)?3090", {24: _card("RTX 3090", None, 23.68, "axolotl #1717")}, 24),
    (r"mi250x?", {64: _card("MI250X (one die)", None, 63.98, _PUBLIC_LOG)}, 64),
    (r"mi300x", {192: _card("MI300X", None, 191.69, _PUBLIC_LOG)}, 192),
    (r"(ascend-?)?910-?93\d\d", {64: _card("Ascend 910 A3 (one die)", None, 61.27, "sglang #29838")}, 64),
    (
        r"(ascend-?)?910b[1-3]?",
        {64: _card("Ascend 910B 64GB", None, 60.96, "LLaMA-Factory #5491; vllm-ascend #19")},
        64,
    ),
)
_SIZE = re.compile(r"(?<![\d.])(\d{2,3})\s*-?\s*(?:gi?b?)(?![a-z0-9])")


def card_named(text: str) -> Card | None:
    """The card that a name tells of: NVML's ("NVIDIA A100-SXM4-80GB"), or as people write it ("H100", "a100-40g").

    None where no known card is named, or none of the size that is told.
    """
    plain = re.sub(r"[\s_/]+", "-", text.strip().lower())
    if "-mig-" in plain:
        return None  # a part of a card, whose size is no card's
    told = _SIZE.search(plain)
    for pattern, sizes, usual in _FAMILIES:
        if re.search(rf"(?<![a-z0-9]){pattern}(?![a-z0-9])", plain):
            return _of_size(sizes, int(told[1])) if told else sizes[usual]
    return None


def card_of_size(text: str) -> Card | None:
    """A card of which only the memory is told that a program can use: "79GiB". None for what is no card's size."""
    try:
        size = parse_quantity(text)
    except ValueError:
        return None
    if not _SMALLEST_BYTES <= size <= _LARGEST_BYTES:
        return None
    return Card(name=text.strip(), total_bytes=None, usable_bytes=int(size), source="told", verified=False)


def known_cards() -> tuple[Card, ...]:
    """Every card once, in the order of the table."""
    return tuple({card.name: card for _, sizes, _ in _FAMILIES for card in sizes.values()}.values())


def _of_size(sizes: Mapping[int, Card], told_gb: int) -> Card | None:
    """The card of the told size, give or take what makers and people round (H200 as 140, B200 as 192)."""
    nearest = min(sizes, key=lambda size: abs(size - told_gb))
    return sizes[nearest] if abs(nearest - told_gb) <= max(2, nearest // 12) else None
