"""The memory of each phase with its bar, the parts of the worst one, and the host's, as text."""

from collections.abc import Iterator

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.doctor.result import Host, Memory, Part, Report
from oomwatch.doctor.show.layout import bar, flowing, left, right, width
from oomwatch.figures import figure
from oomwatch.plan.memory.estimate import TIGHT_RATIO

_CELLS = 30
_NAME, _SIZE, _RANGE, _LEFT = 14, 9, 17, 10
_PART, _SHARE_CELLS = 40, 6


def memory(report: Report, language: wire.Language) -> Iterator[str]:
    """Nothing where nothing is estimated."""
    if not report.memory:
        return
    capacity = figure(report.memory[0].capacity_bytes, "bytes", language)
    yield say("doctor.text.memory", language, capacity=capacity)
    scale = max(max(phase.high_bytes, phase.capacity_bytes) for phase in report.memory)
    for phase in report.memory:
        yield _phase(phase, scale, language)
        if phase.trouble:
            yield from flowing(phase.trouble, "      ")
    if any(phase.verdict == "tight" for phase in report.memory):
        yield from flowing(say("doctor.text.tight", language, share=figure(TIGHT_RATIO, "ratio", language)), "  ")
    for assumed in report.assumed:
        yield from flowing(assumed, "  ")
    yield from _worst(report, language)
    if report.host:
        yield from _host(report.host, language)


def _phase(phase: Memory, scale: float, language: wire.Language) -> str:
    size = figure(phase.expected_bytes, "bytes", language)
    low, high = (f"{one / 2**30:.1f}" for one in (phase.low_bytes, phase.high_bytes))
    between = say("doctor.text.range", language, low=low, high=high)
    signs = bar(phase.expected_bytes, phase.high_bytes, phase.capacity_bytes, scale, _CELLS)
    verdict = say(f"doctor.text.verdict.{phase.verdict}", language)
    room = _room(phase, language)
    return (
        f"  {left(phase.label, _NAME)} {right(size, _SIZE)} {left(between, _RANGE)}{signs} {right(room, _LEFT)}"
        f"  {verdict}"
    )


def _room(phase: Memory, language: wire.Language) -> str:
    ratio = phase.margin_bytes / phase.capacity_bytes
    key = "doctor.text.left" if ratio >= 0 else "doctor.text.over"
    return say(key, language, share=figure(abs(ratio), "ratio", language))


def _worst(report: Report, language: wire.Language) -> Iterator[str]:
    """Where the memory of the worst phase is."""
    phase = next((one for one in report.memory if one.phase == report.peak_phase), None)
    if phase is not None:
        yield ""
        yield say("doctor.text.parts", language, phase=phase.label, moment=phase.moment)
        for part in phase.parts:
            yield from _part(part, phase.expected_bytes, language)


def _part(part: Part, whole_bytes: int, language: wire.Language) -> Iterator[str]:
    """A long formula goes on below itself: none is cut."""
    share = "█" * round(_SHARE_CELLS * part.bytes / whole_bytes) if whole_bytes else ""
    size = right(figure(part.bytes, "bytes", language), _SIZE)
    head = f"  {left(part.label, _PART)} {size} {left(share, _SHARE_CELLS)} "
    yield from flowing(part.formula, head, " " * width(head)) if part.formula else (head.rstrip(),)


def _host(host: Host, language: wire.Language) -> Iterator[str]:
    yield ""
    low, high = (f"{one / 2**30:.0f}" for one in (host.low_bytes, host.high_bytes))
    expected = figure(host.expected_bytes, "bytes", language)
    between = say("doctor.text.range", language, low=low, high=high)
    said = say("doctor.text.host", language, expected=expected, between=between)
    if host.capacity_bytes is not None and host.verdict is not None:
        capacity = figure(host.capacity_bytes, "bytes", language)
        verdict = say(f"doctor.text.verdict.{host.verdict}", language)
        said = say("doctor.text.host_of", language, said=said, capacity=capacity, verdict=verdict)
    yield said
    for part in host.parts:
        yield from _part(part, host.expected_bytes, language)
