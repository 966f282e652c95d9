"""The verdict of a look, and the words for a change and for what comes of it."""

from oomwatch import wire
from oomwatch.advice.choose import override
from oomwatch.catalogue import say
from oomwatch.doctor.case import Case, Look
from oomwatch.doctor.result import Outcome, Verdict
from oomwatch.figures import figure
from oomwatch.plan.memory import PhaseEstimate

_ORDER: tuple[Verdict, ...] = ("will_not_fit", "tight", "fits")


def verdict_of(case: Case) -> Verdict:
    """Refused where verl, Hydra or the shell would stop; then the worse of what is estimated for card and host."""
    look = case.as_it_is
    if look.errors or text_is_wrong(case):
        return "refused"
    if look.estimate is None:
        return "unknown"
    worse = min(look.estimate.verdict, case.host_verdict or "fits", key=_ORDER.index)
    return "unknown" if worse == "fits" and look.unsized else worse


def text_is_wrong(case: Case) -> bool:
    """Whether Hydra or the shell would stop, whatever the values are."""
    return any(one.severity == "error" for one in case.reading.complaints)


def outcome_of(look: Look) -> Outcome:
    """What comes of a change; what was wrong with the text is not asked again."""
    peak, verdict = look.worst, look.estimate.verdict if look.estimate else "unknown"
    known: Verdict = "unknown" if verdict == "fits" and look.unsized else verdict
    return Outcome(
        verdict="refused" if look.errors else known,
        peak_phase=peak.phase if peak else None,
        expected_bytes=peak.expected_bytes if peak else None,
        high_bytes=peak.high_bytes if peak else None,
        margin_ratio=round(peak.margin_bytes / peak.capacity_bytes, 4) if peak else None,
    )


def line_of(case: Case, key: str, value: wire.ConfigValue) -> str:
    """An override as Hydra takes it: "+" for a key that neither verl's configuration nor a file has."""
    return ("" if case.reading.setting(key) is not None else "+") + override(key, value)


def unsized_message(look: Look, language: wire.Language) -> str:
    """Which phases nothing can be said of, and the settings that would tell."""
    lines = [line for line in look.batches.working if line.phase in look.unsized]
    keys = dict.fromkeys(key for line in lines for key in line.missing)
    phases = ", ".join(phase_name(phase, language) for phase in look.unsized)
    return say("doctor.report.missing.unsized", language, phases=phases, keys=", ".join(keys))


def left_of(phase: PhaseEstimate, language: wire.Language) -> str:
    return figure(max(0.0, phase.margin_bytes / phase.capacity_bytes), "ratio", language)


def phase_name(phase: str, language: wire.Language) -> str:
    return say(f"phase.{phase}", language)


def need_of(phase: PhaseEstimate, language: wire.Language) -> str:
    """ "92.4 GiB (83.1 to 101.6)" """
    low, high = (f"{size / 2**30:.1f}" for size in (phase.low_bytes, phase.high_bytes))
    return say(
        "doctor.report.need", language, expected=figure(phase.expected_bytes, "bytes", language), low=low, high=high
    )
