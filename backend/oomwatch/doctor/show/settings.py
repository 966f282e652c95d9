"""What would be refused, which values have no effect, and the arithmetic, as text."""

from collections.abc import Iterator

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.doctor.result import Line, Problem, Report
from oomwatch.doctor.show.layout import flowing, left, right, width

_MARKS = {"error": "✗", "warning": "!", "info": "i"}
_FORMULA_END, _LABEL_MAX, _VALUE = 88, 75, 10


def problems(report: Report, language: wire.Language) -> Iterator[str]:
    """Errors, then what should be known."""
    for heading, severities in (("refused", ("error",)), ("known", ("warning", "info"))):
        found = [one for one in report.problems if one.severity in severities and not _told_below(one, report)]
        if found:
            yield from [""] * (heading == "known" and report.problems[0].severity == "error")
            yield say(f"doctor.text.{heading}", language)
            for one in found:
                yield from _problem(one, language)


def _told_below(one: Problem, report: Report) -> bool:
    """What is given twice stands among the values without effect."""
    return one.check == "given_twice" and any(shadowed.key == one.key for shadowed in report.shadowed)


def _problem(one: Problem, language: wire.Language) -> Iterator[str]:
    where = one.key if one.place is None else f"{one.key} ({one.place})" if one.key else one.place
    yield f"  {_MARKS[one.severity]} {where}"
    yield from flowing(one.message, "    ")
    if one.verl_says:
        yield from flowing(say("doctor.text.verl_says", language, says=one.verl_says), "    ")
    if one.remedy:
        yield from flowing(one.remedy, "    ")
    if one.suggestion:
        yield f"    {say('doctor.text.set', language, line=one.suggestion)}"
    if len(one.valid) > 1:
        values = ", ".join(map(str, one.valid))
        yield f"    {say('doctor.text.valid', language, values=values)}"


def shadowed(report: Report, language: wire.Language) -> Iterator[str]:
    """Values of people that others were put over."""
    if report.shadowed:
        yield say("doctor.text.shadowed", language)
        for one in report.shadowed:
            yield from flowing(one.message, "  ", "    ")


def working(report: Report, language: wire.Language) -> Iterator[str]:
    """The arithmetic line by line, the passes of each phase below its name."""
    if not report.working:
        return
    yield say("doctor.text.working", language)
    phases = dict.fromkeys(line.phase for line in report.working)
    assumed: dict[str, None] = {}
    for phase in sorted(phases, key=lambda one: one is not None):
        for line in report.working:
            if line.phase == phase:
                is_new = any(key not in assumed for key in line.assumed)
                assumed |= dict.fromkeys(line.assumed)
                yield _line(line, language, star=" *" if is_new else "")
    if assumed:
        yield from flowing(say("doctor.text.assumed", language, keys=", ".join(assumed)), "  ", "    ")


def _line(line: Line, language: wire.Language, star: str) -> str:
    """`star`: the sign of what rests on a default that no line before it did."""
    phase = say(f"phase.{line.phase}", language) if line.phase else None
    label = line.label if phase is None else say("doctor.text.of_phase", language, phase=phase, what=line.label)
    if line.value is None:
        needs = say("doctor.text.needs", language, keys=", ".join(line.missing))
        return f"  {label}{star}: {needs}"
    formula = "" if line.formula == str(line.value) else line.formula
    columns = min(_LABEL_MAX, _FORMULA_END - width(formula) - 1)
    return f"  {left(label + star, columns)}{right(formula, _FORMULA_END - columns)}{right(f'{line.value:,}', _VALUE)}"
