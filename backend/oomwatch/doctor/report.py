"""The whole report on a configuration, from its reading and the machine that it is to run on. Pure."""

from collections.abc import Iterator

from msgspec import structs

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.doctor import rows
from oomwatch.doctor.advice import advice_of, plan_of
from oomwatch.doctor.case import Case, Given, Look
from oomwatch.doctor.headline import headline
from oomwatch.doctor.outcome import unsized_message, verdict_of
from oomwatch.doctor.problems import problems_of
from oomwatch.doctor.read import Reading
from oomwatch.doctor.result import Missing, Report, Version
from oomwatch.doctor.together import fixes
from oomwatch.plan.batches import Batches, batches_of
from oomwatch.plan.shape import ModelShape

__all__ = ["Given", "Report", "make_report"]

ALONE = Given()  # nothing but the configuration


def make_report(
    reading: Reading, given: Given = ALONE, language: wire.Language = "en", *, with_defaults: bool = False
) -> Report:
    """What a configuration means on each GPU, what verl would refuse, whether it fits, and what to set.

    `with_defaults`: list the settings that nobody set too.
    """
    case = Case(reading, given)
    look = case.as_it_is
    problems, missing, base = problems_of(case, language), tuple(_missing(case, language)), fixes(case)
    plan = plan_of(case, base, language)
    return Report(
        verdict=verdict_of(case),
        headline=headline(case, problems, plan, missing, language),
        derived=rows.derived_of(look.batches),
        problems=problems,
        shadowed=tuple(rows.shadowed_of(case, language)),
        memory=tuple(rows.memory_of(phase, language) for phase in look.estimate.phases) if look.estimate else (),
        advice=advice_of(case, base, language),
        plan=plan,
        kind=reading.inputs[0].kind,
        inputs=tuple(rows.inputs_of(reading)),
        version=Version(value=reading.version, how=reading.version_from, candidates=reading.versions),
        strategy=reading.sharding,
        model=rows.model_of(case.shape, reading.model_path),
        critic_model=rows.model_of(_critic(case, look), reading.critic_model_path),
        card=rows.card_of(given.card),
        missing=missing,
        assumed=tuple(say(f"plan.assumed.{one}", language) for one in (look.estimate.assumed if look.estimate else ())),
        working=tuple(rows.working_of(look.batches, _told(reading), language)),
        unknown=tuple(rows.unknown_of(case, language)),
        complaints=tuple(rows.complaints_of(reading, language)),
        settings=tuple(rows.settings_of(reading, with_defaults=with_defaults)),
        peak_phase=look.worst.phase if look.worst else None,
        largest=tuple(rows.largest_of(case)),
        host=rows.host_of(look.estimate.host, case, language) if look.estimate else None,
    )


def _told(reading: Reading) -> Batches:
    """The arithmetic of what people set alone, which knows what of it is verl's default."""
    told = structs.replace(reading, settings=tuple(one for one in reading.settings if one.origin.kind != "default"))
    return batches_of({**told.emptied, **told.config}, reading.version)


def _critic(case: Case, look: Look) -> ModelShape | None:
    """Of a run that has a critic: its own model, else the actor's."""
    return (case.critic_shape or case.shape) if look.batches.phase("update_critic") else None


def _missing(case: Case, language: wire.Language) -> Iterator[Missing]:
    if case.shape is None:
        path = case.reading.model_path
        key = "doctor.report.missing.model" if path is None else "doctor.report.missing.model_unknown"
        yield Missing(what="model", message=say(key, language, path=path or ""))
    if case.given.card is None:
        yield Missing(what="card", message=say("doctor.report.missing.card", language))
    look = case.as_it_is
    if look.batches.gpus is None and not look.unsettled:
        yield Missing(what="gpus", message=say("doctor.report.missing.gpus", language))
    if look.unsettled:
        message = say("doctor.report.missing.unsettled", language, keys=", ".join(look.unsettled))
        yield Missing(what="phases", message=message)
    if look.unsized:
        yield Missing(what="phases", message=unsized_message(look, language))
    if look.why_none is not None:
        yield Missing(what="phases", message=say("doctor.report.missing.phases", language, why=look.why_none))
