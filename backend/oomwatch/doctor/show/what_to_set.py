"""The largest values that fit, the changes that help, and those to make together, as text."""

from collections.abc import Iterator

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.doctor.result import Advice, Report
from oomwatch.doctor.show.layout import flowing, left, right
from oomwatch.doctor.text import shown

_KEY, _VALUE = 65, 6


def largest(report: Report, language: wire.Language) -> Iterator[str]:
    if report.largest:
        yield say("doctor.text.largest", language)
        for one in report.largest:
            value = say("doctor.text.none_fits", language) if one.value is None else shown(one.value)
            key = "doctor.text.now" if one.at_most in (None, one.value) else "doctor.text.now_tight"
            now = say(key, language, value=shown(one.now), at_most=shown(one.at_most))
            yield f"  {left(one.key, _KEY)} {right(value, _VALUE)}  {now}"


def advice(report: Report, language: wire.Language) -> Iterator[str]:
    if report.advice:
        yield say("doctor.text.advice", language)
        for number, one in enumerate(report.advice, 1):
            yield from _advice(number, one, language)


def _advice(number: int, one: Advice, language: wire.Language) -> Iterator[str]:
    yield f"  {number}. {one.override}"
    yield from flowing(one.text, "     ")
    yield from flowing(say("doctor.text.effect", language, effect=one.effect), "     ")
    yield from flowing(say("doctor.text.price", language, price=one.price), "     ")


def plan(report: Report, language: wire.Language) -> Iterator[str]:
    """The changes to make together, as a diff and as words for the command line."""
    found = report.plan
    if found is None:
        return
    key = "doctor.text.plan" if found.enough else "doctor.text.plan_eases"
    yield say(key, language)
    yield from (f"  {line}" for line in found.diff.splitlines())
    yield say("doctor.text.copy", language)
    *first, last = [change.override for change in found.changes]
    yield from (f"  {line} \\" for line in first)
    yield f"  {last}"
