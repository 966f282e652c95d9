"""The order of a report: the verdict, what would be refused, the arithmetic, the memory, what to change."""

from collections.abc import Iterator

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.doctor.result import Report
from oomwatch.doctor.show.layout import COLUMNS, flowing, laid_out, printable
from oomwatch.doctor.show.memory import memory
from oomwatch.doctor.show.settings import problems, shadowed, working
from oomwatch.doctor.show.what_to_set import advice, largest, plan
from oomwatch.figures import figure

SECTIONS = (problems, shadowed, working, memory, largest, advice, plan)


def page_of(report: Report, language: wire.Language, columns: int = COLUMNS) -> str:
    """The whole text, for a terminal of so many columns. Sections that have nothing to say are left out."""
    lines = [*flowing(report.headline), "", *_about(report, language)]
    for section in SECTIONS:
        told = list(section(report, language))
        lines += ["", *told] if told else []
    return "\n".join(printable(list(laid_out(lines, min(columns, COLUMNS)))))


def _about(report: Report, language: wire.Language) -> Iterator[str]:
    """What was read, and what it was taken to be of."""
    how = say(f"doctor.text.version.{report.version.how}", language)
    inputs = ", ".join(one.name for one in report.inputs)
    told = [
        inputs,
        say("doctor.text.version", language, value=report.version.value, how=how),
        report.strategy,
        *([_model(report, language)] if report.model else []),
        *([_card(report, language)] if report.card else []),
    ]
    yield from flowing(" · ".join(told))
    for missing in report.missing:
        yield from flowing(f"? {missing.message}", later="  ")


def _model(report: Report, language: wire.Language) -> str:
    model = report.model
    if model is None:
        return ""
    name = say("doctor.text.model", language, name=model.name, billions=f"{model.parameters / 1e9:.2f}")
    return name if model.verified else say("doctor.text.unverified", language, what=name)


def _card(report: Report, language: wire.Language) -> str:
    card = report.card
    if card is None:
        return ""
    gpus = report.derived.get("gpus")
    name = say(
        "doctor.text.card",
        language,
        count="?" if gpus is None else gpus,
        name=card.name,
        usable=figure(card.usable_bytes, "bytes", language),
    )
    return name if card.verified else say("doctor.text.unverified", language, what=name)
