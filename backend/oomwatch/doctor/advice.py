"""What to change, as the report tells it: each remedy by itself, and the changes to make together."""

from collections.abc import Sequence

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.doctor import result
from oomwatch.doctor.case import Case
from oomwatch.doctor.changed import Changes
from oomwatch.doctor.outcome import left_of, line_of, outcome_of, phase_name
from oomwatch.doctor.text import shown
from oomwatch.doctor.together import Together, enough_together, in_order_of_use
from oomwatch.doctor.trials import Trial, trials
from oomwatch.figures import figure

ADVICE_MAX = 8


def advice_of(case: Case, base: Changes, language: wire.Language) -> tuple[result.Advice, ...]:
    """The remedies that help, the best first. `base` is what verl would stop without."""
    best = in_order_of_use(trials(case, base))[:ADVICE_MAX]
    return tuple(_advice(case, trial, language) for trial in best)


def plan_of(case: Case, base: Changes, language: wire.Language) -> result.Plan | None:
    """What to change together; None where nothing needs to, or nothing helps. `base` is as in advice_of."""
    changes, remedies = enough_together(case, base) if case.as_it_is.estimate else Together(base, {})
    if not changes:
        return None
    look = case.look(changes)
    found = tuple(
        result.Change(
            key=key,
            value_from=case.value_of(key),
            value_to=value,
            override=line_of(case, key, value),
            price=remedies[key].price.by_language()[language] if key in remedies else None,
        )
        for key, value in changes.items()
    )
    starts = not look.errors
    return result.Plan(
        changes=found,
        override=" ".join(change.override for change in found),
        diff=diff_of(found),
        outcome=outcome_of(look),
        enough=starts and (look.estimate is None or look.fits),
    )


def diff_of(changes: Sequence[result.Change]) -> str:
    """The settings before and after, as a diff; one that was null is only added."""
    lines = []
    for change in changes:
        if change.value_from is not None:
            lines.append(f"-{change.key}: {shown(change.value_from)}")
        lines.append(f"+{change.key}: {shown(change.value_to)}")
    return "\n".join(lines)


def _advice(case: Case, trial: Trial, language: wire.Language) -> result.Advice:
    entry, key, value, _ = trial.proposal
    return result.Advice(
        remedy=entry.remedy,
        key=key,
        value_from=case.value_of(key),
        value_to=value,
        override=line_of(case, key, value),
        text=entry.text.by_language()[language],
        effect=_effect(trial, language),
        price=entry.price.by_language()[language],
        price_level=entry.price.level,
        phase=trial.phase,
        frees_bytes=trial.frees_bytes,
        enough=trial.enough,
        outcome=outcome_of(trial.after),
        source=entry.source,
    )


def _effect(trial: Trial, language: wire.Language) -> str:
    """ "frees 12.3 GiB in actor update; everything fits then, with 12 % left in rollout" """
    phase, frees, worst = phase_name(trial.phase, language), trial.frees_bytes, trial.after.worst
    effect = (
        say("doctor.report.effect.runs", language, phase=phase)
        if frees is None
        else say("doctor.report.effect.frees", language, phase=phase, frees=figure(frees, "bytes", language))
    )
    if worst is None:
        return effect
    key = "doctor.report.effect.enough" if trial.enough else "doctor.report.effect.not_enough"
    return say(key, language, effect=effect, worst=phase_name(worst.phase, language), left=left_of(worst, language))
