"""Everything that is wrong, in one list: with the text, with the names of settings, and with what they come to."""

from msgspec import structs

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.doctor.case import Case
from oomwatch.doctor.outcome import line_of
from oomwatch.doctor.read import Complaint, Unknown
from oomwatch.doctor.read.words import words_of
from oomwatch.doctor.result import Problem
from oomwatch.doctor.text import place_in, place_of
from oomwatch.plan import problem

_ORDER = ("error", "warning", "info")


def problems_of(case: Case, language: wire.Language) -> tuple[Problem, ...]:
    """Errors first; of the same severity first the text, then what verl makes of it, then unknown settings."""
    reading = case.reading
    stopped = {one.values.get("key") for one in reading.complaints if one.severity == "error"}
    found = [
        *(_of_text(one, language) for one in reading.complaints),
        *(_of_plan(case, one, language) for one in case.as_it_is.problems),
        *(_of_name(case, one, language) for one in reading.unknown if one.key not in stopped),
    ]
    return tuple(sorted(found, key=lambda one: _ORDER.index(one.severity)))


def unknown_message(case: Case, unknown: Unknown, language: wire.Language) -> str:
    """ "verl 0.9.1 has no such setting with fsdp; the nearest is ..." """
    reading = case.reading
    key = (
        "doctor.report.unknown.other"
        if unknown.strategy
        else "doctor.report.unknown.releases"
        if unknown.releases
        else "doctor.report.unknown"
    )
    said = say(
        key,
        language,
        version=reading.version,
        strategy=reading.strategy,
        other=unknown.strategy or "",
        first=unknown.releases[0] if unknown.releases else "",
        last=unknown.releases[-1] if unknown.releases else "",
    )
    return (
        said
        if unknown.nearest is None
        else say("doctor.report.unknown.nearest", language, said=said, nearest=unknown.nearest)
    )


def problem_in_words(found: problem.Problem, language: wire.Language, place: str | None = None) -> Problem:
    """What verl makes of settings. `place`: where the setting was told."""
    return Problem(
        severity=found.severity,
        key=found.key,
        message=say(f"plan.check.{found.check}", language, **found.numbers),
        suggestion=found.suggestion,
        check=found.check,
        numbers=found.numbers,
        verl_says=found.verl_says,
        valid=found.valid,
        place=place,
    )


def _of_text(complaint: Complaint, language: wire.Language) -> Problem:
    words = words_of(complaint, language)
    return Problem(
        severity=complaint.severity,
        key=str(complaint.values.get("key", "")),
        message=words.what,
        suggestion=complaint.suggestion,
        remedy=words.remedy,
        check=complaint.what,
        numbers=dict(complaint.values),
        place=place_in(complaint.name, complaint.line),
    )


def _of_plan(case: Case, found: problem.Problem, language: wire.Language) -> Problem:
    setting = case.reading.setting(found.key)
    told = problem_in_words(found, language, place_of(setting.origin) if setting else None)
    return outlived(told, language) if (found.check, found.key) in case.outlived else told


def outlived(told: Problem, language: wire.Language) -> Problem:
    """What verl should have stopped with, of a run that took steps all the same: a warning, and said to be one."""
    said = say("doctor.report.outlived", language, said=told.message)
    return structs.replace(told, severity="warning", message=said)


def _of_name(case: Case, unknown: Unknown, language: wire.Language) -> Problem:
    setting = case.reading.setting(unknown.key)
    value = setting.value if setting else None
    return Problem(
        severity="warning",
        key=unknown.key,
        message=unknown_message(case, unknown, language),
        suggestion=line_of(case, unknown.nearest, value)
        if unknown.nearest and isinstance(value, bool | int | float | str)
        else None,
        check="unknown_key",
        place=place_of(unknown.origin),
    )
