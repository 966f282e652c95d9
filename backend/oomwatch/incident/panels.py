"""Which curves of a report tell something, which do not, and what is said of those. PURE."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.figures import figure
from oomwatch.incident.report import Curve

GIB = 2**30
# What belongs together, most telling first; the rest by its name, what changed most first.
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gpu", ("gpu_used_bytes",)),
    ("torch", ("torch_reserved_bytes", "torch_allocated_bytes", "torch_device_used_bytes")),
    ("host", ("host_memory_used_bytes", "host_cgroup_used_bytes", "host_swap_used_bytes", "host_shm_used_bytes")),
    ("disk", ("host_disk_used_bytes",)),
    ("engine", ("kv_cache_used_ratio",)),
)
_NAMED = frozenset(series for _, of_group in GROUPS for series in of_group)
FLAT_BELOW = 0.01  # of the curve's scale: of a card of 80 GiB less than what one longer batch takes
# A curve's scale is the greatest of its values, and of some units at least so much: some MiB of swap are flat.
_SCALE_LEAST = {"bytes": 4.0 * GIB, "ratio": 1.0}


class Panel(NamedTuple):
    """Curves that belong together. `stir`: by how much of its scale the liveliest of them moved."""

    title: str
    curves: tuple[Curve, ...]
    stir: float

    @property
    def is_flat(self) -> bool:
        return self.stir < FLAT_BELOW


def panels(curves: Sequence[Curve], language: wire.Language) -> list[Panel]:
    """All curves; those that move stand before those that are flat."""
    named = [_panel(say(f"incident.chart_{group}", language), curves, of_group) for group, of_group in GROUPS]
    others = dict.fromkeys(one.series for one in curves if one.series not in _NAMED)
    rest = sorted((_panel(name, curves, (name,)) for name in others), key=lambda one: -one.stir)
    return sorted((one for one in [*named, *rest] if one.curves), key=lambda one: one.is_flat)


def _panel(title: str, curves: Sequence[Curve], of_group: Sequence[str]) -> Panel:
    members = tuple(curve for curve in curves if curve.series in of_group)
    return Panel(title, members, max(map(_stir, members), default=0.0))


def _stir(curve: Curve) -> float:
    known = [value for value in curve.values if value is not None]
    if not known:
        return 0.0
    scale = max(_SCALE_LEAST.get(curve.unit, 0.0), *map(abs, known))
    return (max(known) - min(known)) / scale if scale > 0 else 0.0


def place(curve: Curve) -> str:
    """Where it was read: "node gpu-07 gpu 3"."""
    return " ".join(f"{label} {value}" for label, value in curve.labels.items())


def names(panel: Panel) -> list[str]:
    """What tells its curves apart: the place, and the series where there are several."""
    several = len({curve.series for curve in panel.curves}) > 1
    return [f"{place(curve)} · {curve.series}" if several else place(curve) for curve in panel.curves]


def flat_rows(panel: Panel, language: wire.Language) -> Iterator[tuple[str, str, str]]:
    """For each series of a flat panel: its name, where it was read, and that it stayed as it was."""
    for series in dict.fromkeys(curve.series for curve in panel.curves):
        members = [curve for curve in panel.curves if curve.series == series]
        where = place(members[0]) if len(members) == 1 else say("incident.places", language, n=len(members))
        yield series, where, _stayed(members, language)


def _stayed(curves: Sequence[Curve], language: wire.Language) -> str:
    known = [value for curve in curves for value in curve.values if value is not None]
    if not known:
        return say("incident.unread", language)
    least, most = (figure(value, curves[0].unit, language) for value in (min(known), max(known)))
    if least == most:
        return say("incident.stayed_at", language, value=most)
    key = "incident.stayed_between" if len(curves) == 1 else "incident.each_between"
    return say(key, language, least=least, most=most)
