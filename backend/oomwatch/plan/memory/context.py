"""What a process holds outside of torch's allocator, and what torch keeps beyond what it has given out."""

from collections.abc import Iterable

from oomwatch.plan.memory.part import GIB, Part, held, staying, total

CONTEXTS = "published device totals less torch's: 1.1 to 3.3 GiB a trainer process; LS4 of the table 1.12 with one GPU"
CACHING = "published reserved less allocated peaks (TI, PV1, LS1, H2a of the table)"
ALONE_BYTES, WITH_OTHERS_BYTES = 1.1 * GIB, 1.9 * GIB  # NCCL's channels and buffers come on top with others
# Gaps between blocks that nothing fits into, as a share of what was asked for: little of what stays for good, more of
# what comes and goes.
GAPS_OF_LASTING_RATIO, GAPS_RATIO = 0.02, 0.08
# Of the blocks that other moments of a pass left behind, so much cannot serve the worst one. torch gives them back
# before it runs out, so they fill a card without breaking it.
LEFT_BEHIND_RATIO = 0.3


def context(gpus: int) -> Part:
    size = ALONE_BYTES if gpus == 1 else WITH_OTHERS_BYTES
    formula = f"{size / GIB:g} GiB a process" + ("" if gpus == 1 else " with NCCL")
    return Part(name="context", bytes=round(size), formula=formula, source=CONTEXTS, holder="context", spread=0.45)


def gaps(parts: tuple[Part, ...]) -> Part:
    """What torch has reserved in vain at its peak and cannot give back."""
    allocated = held(parts, "allocated")
    lasting = staying(parts, "lasting")
    size = round(GAPS_OF_LASTING_RATIO * lasting + GAPS_RATIO * (allocated - lasting))
    passing = f"{GAPS_RATIO:.0%} x {(allocated - lasting) / GIB:.3g} GiB that come and go"
    formula = f"{passing} + {GAPS_OF_LASTING_RATIO:.0%} x {lasting / GIB:.3g} GiB that stay"
    return Part(name="gaps", bytes=size, formula=formula, source=CACHING, holder="reserved", spread=0.8)


def left_behind(at_worst: tuple[Part, ...], moments: Iterable[tuple[Part, ...]], room_bytes: int) -> Part:
    """What torch keeps of the blocks of other moments, as far as there is room for it."""
    largest: dict[str, int] = {}
    for part in (part for parts in moments for part in parts if part.stay != "lasting"):
        largest[part.name] = max(largest.get(part.name, 0), part.bytes)
    others = sum(largest.values()) - total(part for part in at_worst if part.stay != "lasting")
    size = min(max(0, room_bytes), round(LEFT_BEHIND_RATIO * others))
    formula = f"{LEFT_BEHIND_RATIO:.0%} x {others / GIB:.3g} GiB of other moments"
    return Part(name="left_behind", bytes=size, formula=formula, source=CACHING, holder="reserved", spread=0.8)
