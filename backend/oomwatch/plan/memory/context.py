"""What a process holds outside of torch's allocator, and what torch keeps beyond what it has given out."""

from oomwatch.plan.memory.part import GIB, Part, held, told, total

CONTEXTS = "published device totals less torch's: 1.1 to 3.3 GiB a trainer process; LS4 of the table 1.12 with one GPU"
CACHING = "published reserved less allocated peaks (TI, PV1, H2a of the table)"
_ALONE_BYTES, _WITH_OTHERS_BYTES = 1.1 * GIB, 1.9 * GIB  # NCCL's channels and buffers come on top with others
# Blocks that the allocator has cached and cannot use for what is asked, as a share of what was asked for: little of
# what stays for good, more of what comes and goes.
_LASTING = {"weights", "gradients", "optimizer", "waiting"}
_CACHED_OF_LASTING_RATIO, _CACHED_RATIO = 0.02, 0.12


def context(gpus: int) -> Part:
    size = _ALONE_BYTES if gpus == 1 else _WITH_OTHERS_BYTES
    formula = f"{size / GIB:g} GiB a process" + ("" if gpus == 1 else " with NCCL")
    return Part(name="context", bytes=round(size), formula=formula, source=CONTEXTS, holder="context", spread=0.45)


def cached(parts: tuple[Part, ...]) -> Part:
    """What torch has reserved without need at its peak."""
    allocated = held(parts, "allocated")
    lasting = total(part for part in parts if part.name in _LASTING)
    size = round(_CACHED_OF_LASTING_RATIO * lasting + _CACHED_RATIO * (allocated - lasting))
    formula = (
        f"{_CACHED_RATIO:.0%} x {(allocated - lasting) / GIB:.3g} GiB that come and go + {_CACHED_OF_LASTING_RATIO:.0%}"
    )
    return Part(name="cached", bytes=size, formula=formula, source=CACHING, holder="reserved", spread=0.8)


def as_process(parts: tuple[Part, ...], gpus: int) -> tuple[Part, ...]:
    """The parts of a process on the device: what torch gave out, what it keeps beside it, and what is outside of it."""
    return told((*parts, cached(parts), context(gpus)))
