"""The verdict in a sentence: what a person wants to know first."""

import functools

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.doctor.case import Case
from oomwatch.doctor.outcome import left_of, need_of, phase_name, text_is_wrong, unsized_message, verdict_of
from oomwatch.doctor.result import Missing, Plan, Problem
from oomwatch.figures import figure
from oomwatch.plan.cards import Card
from oomwatch.plan.memory import PhaseEstimate

NAMED_MAX = 2  # changes that are named in the sentence


def headline(
    case: Case, problems: tuple[Problem, ...], plan: Plan | None, missing: tuple[Missing, ...], language: wire.Language
) -> str:
    """ "Will not fit: actor update needs 92.4 GiB ...; set ... and it fits with 12 % left." """
    look, card = case.as_it_is, case.given.card
    refused = verdict_of(case) == "refused"
    said = [_refused(problems, language)] if refused else []
    if look.unsized and look.estimate is not None and look.estimate.verdict == "fits":
        said.append(unsized_message(look, language) + _cure(case, plan, language))
    elif look.worst is not None and card is not None:
        said.append(_memory(look.worst, card, language) + _cure(case, plan, language))
    elif not refused:
        said.append(say("doctor.report.headline.unknown", language, why=missing[0].message if missing else ""))
    else:
        said[0] += _cure(case, plan, language)
    if case.host_verdict == "will_not_fit":
        said.append(_host(case, language))
    return functools.reduce(
        lambda first, second: say("doctor.report.headline.sentences", language, first=first, second=second), said
    )


def _host(case: Case, language: wire.Language) -> str:
    host = case.as_it_is.estimate.host.expected_bytes if case.as_it_is.estimate else 0
    need, has = (figure(size, "bytes", language) for size in (host, case.given.host_bytes or 0))
    return say("doctor.report.headline.host", language, need=need, has=has)


def _refused(problems: tuple[Problem, ...], language: wire.Language) -> str:
    errors = [one for one in problems if one.severity == "error"]
    key = "doctor.report.headline.refused" if len(errors) == 1 else "doctor.report.headline.refused_more"
    return say(key, language, message=errors[0].message.rstrip(".。"), more=len(errors) - 1)


def _memory(worst: PhaseEstimate, card: Card, language: wire.Language) -> str:
    return say(
        f"doctor.report.headline.{'trouble' if worst.trouble else worst.verdict}",
        language,
        phase=phase_name(worst.phase, language),
        need=need_of(worst, language),
        capacity=figure(worst.capacity_bytes, "bytes", language),
        card=card.name,
        left=left_of(worst, language),
        trouble=say(f"plan.trouble.{worst.trouble}", language) if worst.trouble else "",
    )


def _cure(case: Case, plan: Plan | None, language: wire.Language) -> str:
    """What to set, where something helps; many changes stand below."""
    if plan is None or plan.outcome.verdict == "refused":
        return ""
    outcome, count = plan.outcome, len(plan.changes)
    what = plan.override if count <= NAMED_MAX else say("doctor.report.headline.changes", language, count=count)
    left = figure(max(0.0, outcome.margin_ratio or 0.0), "ratio", language)
    expected = figure(outcome.expected_bytes or 0, "bytes", language)
    key = "cure" if plan.enough else "eases"
    if outcome.margin_ratio is None:
        key = "starts"
    if text_is_wrong(case):
        key = "helps"  # no setting mends the text
    return say(f"doctor.report.headline.{key}", language, what=what, left=left, expected=expected)
