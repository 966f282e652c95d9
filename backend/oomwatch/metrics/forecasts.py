"""When what fills up will be full, as the rules that look ahead believe, whether they warn of it yet or not."""

from collections.abc import Iterator

from oomwatch.core.foretold import Foretells, Foretold
from oomwatch.core.subject import Subject
from oomwatch.metrics.family import Family, Reading, Room, View

_LABELS, _PER = ("node", "gpu", "place"), ("forecast",)
SECONDS = Family("oomwatch_forecast_full_seconds", "gauge",
                 "Time until it is full, if it goes on as it did; absent where nothing fills up.",
                 _LABELS, _PER)  # fmt: skip
STEPS = Family("oomwatch_forecast_full_steps", "gauge",
               "Training steps until it is full; absent where no steps are told.", _LABELS, _PER)  # fmt: skip


def _read(view: View) -> Iterator[Reading]:
    soonest = _soonest(view)
    yield SECONDS.of(((subject.name, subject.gpu, what), one.seconds) for (subject, what), one in soonest.items())
    yield STEPS.of(((subject.name, subject.gpu, what), one.steps) for (subject, what), one in soonest.items())


def _soonest(view: View) -> dict[tuple[Subject, str], Foretold]:
    """By what is told of; of several rules the one that expects it first."""
    engine, found = view.service.engine, dict[tuple[Subject, str], Foretold]()
    foretelling = dict.fromkeys(
        one for rule in engine.rules.in_use() for one in rule.when if isinstance(one, Foretells)
    )
    for condition in foretelling:
        for scope in condition.scopes:
            for subject in engine.fleet.subjects(scope):
                for told in condition.foretold(engine.fleet, subject, view.now):
                    known = found.setdefault((subject, told.what), told)
                    found[subject, told.what] = min(known, told, key=_time)
    return found


def _time(told: Foretold) -> float:
    return told.seconds if told.seconds is not None else told.steps or 0.0


ROOM = Room((SECONDS, STEPS), _read)
