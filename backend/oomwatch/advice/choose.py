"""The best three remedies for an alert's causes: how likely the cause is, whether it is enough, what it costs."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import structs

from oomwatch import wire
from oomwatch.advice.catalogue import Entry, entries
from oomwatch.advice.changes import CHANGES, Change, Setting
from oomwatch.advice.conditions import CONDITIONS
from oomwatch.advice.keys import key_for
from oomwatch.advice.situation import Situation
from oomwatch.advice.words import text_of
from oomwatch.core.cause import HYPOTHESES
from oomwatch.core.evidence import gather
from oomwatch.core.facts import Facts
from oomwatch.core.fleet import Fleet
from oomwatch.core.subject import subject_of
from oomwatch.core.verdict import Verdict
from oomwatch.plan.batches import batches_of
from oomwatch.plan.settings import Config

BEST = 3
RESTART = "restart_every"
PUT_OFF = 0.5
LIKELY_RATIO = 0.25  # of the first cause's score: what is less likely is not worth a change
HELPS_MIN = 0.2  # of what is needed
PRICE_WEIGHT = 0.2  # a remedy of the next price level has to be so much better
FAILURES = ("device_oom", "host_oom")  # events that tell that memory has run out
VERL = (None, "verl")  # frameworks whose keys these are; a configuration that names none was read from verl's log


class Option(NamedTuple):
    entry: Entry
    cause: wire.Cause
    key: str | None
    value: wire.ConfigValue | None
    change: Change | None
    worth: float
    helps: bool = True  # it frees more than a trifle of what is needed


def advise(transition: wire.Transition, fleet: Fleet) -> wire.Transition:
    """The transition with its remedies: of one that fires and has causes, as long as the fleet is as it was then.

    One that has its remedies already keeps them.
    """
    if transition.state != "firing" or not transition.causes or transition.remedies:
        return transition
    topic = next((one.topics[0] for one in HYPOTHESES if one.cause == transition.causes[0].cause), None)
    if topic is None:
        return transition  # as another version told it
    subject = subject_of(transition.labels)
    run = fleet.run_record(subject)
    verdict = Verdict("active", transition.value, transition.limit, transition.unit, transition.facts)
    facts = gather(fleet, subject, topic, str(transition.facts.get("event", "")), verdict, transition.at)
    config = run.config if run else {}
    found = remedies(
        transition.causes,
        config,
        facts,
        framework=run.framework if run else None,
        version=run.framework_version if run else None,
    )
    return structs.replace(transition, remedies=found)


def remedies(
    causes: Sequence[wire.Cause],
    config: Config,
    facts: Facts,
    *,
    framework: str | None = None,
    version: str | None = None,
) -> tuple[wire.Remedy, ...]:
    """The three best at most, the most useful first; of these, what only limits the damage comes last.

    A run without a configuration gets keys, and no values.
    """
    if framework not in VERL:
        return ()
    likely = [one for one in causes if one.score >= LIKELY_RATIO * causes[0].score]
    options = _together([option for cause in likely for option in options_for(cause, config, facts, version)])
    best: dict[str, Option] = {}
    for option in sorted(options, key=lambda one: -one.worth):
        best.setdefault(option.key or option.entry.remedy, option)
    found = list(best.values())
    most_useful = _most_useful(found)[:BEST]
    return tuple(_as_wire(one, facts) for one in sorted(most_useful, key=lambda one: one.entry.limits_damage))


def _most_useful(found: list[Option]) -> list[Option]:
    """Without what frees a trifle, unless what is left would prevent nothing: a little room is more than none."""
    helping = [one for one in found if one.helps]
    prevents = any(not one.entry.limits_damage for one in helping)
    return helping if prevents else found


def _together(options: Sequence[Option]) -> list[Option]:
    """One option a remedy: for the cause that it is best for, and worth more the more of the causes it is for."""
    by_remedy: dict[str, list[Option]] = {}
    for option in options:
        by_remedy.setdefault(option.entry.remedy, []).append(option)
    return [
        max(same, key=lambda one: one.worth)._replace(worth=sum(one.worth for one in same))
        for same in by_remedy.values()
    ]


def options_for(cause: wire.Cause, config: Config, facts: Facts, version: str | None) -> list[Option]:
    """All that can be done for one cause."""
    here = Situation(config, version, facts, batches_of(config, version), cause.phase)
    return [option for entry in entries() if (option := _option(entry, cause, here)) is not None]


def _option(entry: Entry, cause: wire.Cause, here: Situation) -> Option | None:
    """What a remedy would be in this situation; None where it is none."""
    fits = entry.causes.get(cause.cause, 0.0)
    if fits == 0.0 or (entry.phases and cause.phase is not None and cause.phase not in entry.phases):
        return None
    if entry.engines and here.settings.engine is not None and here.settings.engine not in entry.engines:
        return None
    if not all(CONDITIONS[name](here) for name in entry.when):
        return None
    key = key_for(entry.keys, here.config, here.version) if entry.keys else None
    if entry.keys and key is None:
        return None
    value = here.config.get(key) if key else None
    change = (
        CHANGES[entry.change](Setting(here, key, value, entry.with_)) if key and entry.change and here.config else None
    )
    if key and here.config and (change is None or (change.frees_bytes or 1) <= 0):
        return None  # the run has it so already, it cannot be lower, or would take more
    enough = _enough(entry, change, here)
    worth = cause.score * fits * enough / _dear(entry)
    return Option(entry, cause, key, value, change, worth, helps=enough >= HELPS_MIN * PUT_OFF)


def _enough(entry: Entry, change: Change | None, here: Situation) -> float:
    """How much of what is needed it frees, from 0 to 1. What goes on growing is cured by no room, only put off."""
    frees, needed = change.frees_bytes if change else None, here.facts.needed_bytes
    lasting = PUT_OFF if here.facts.steps_left is not None and entry.keys and entry.change != RESTART else 1.0
    if frees is None or needed is None:
        return lasting * entry.strength
    return lasting * min(1.0, frees / needed) if needed > 0 else lasting


def _dear(entry: Entry) -> float:
    return 1 + PRICE_WEIGHT * (entry.price.level - 1)


def _as_wire(option: Option, facts: Facts) -> wire.Remedy:
    entry, change = option.entry, option.change
    frees = change.frees_bytes if change else None
    needed = facts.needed_bytes if frees is not None and _can_be_had(facts) else None
    remedy = wire.Remedy(
        remedy=entry.remedy,
        cause=option.cause.cause,
        key=option.key,
        value_from=option.value if change else None,
        value_to=change.to if change else None,
        override=override(option.key, change.to) if option.key and change else None,
        frees_bytes=int(frees) if frees is not None else None,
        needed_bytes=int(needed) if needed else None,
        price=entry.price.by_language(),
        source=entry.source,
        limits_damage=entry.limits_damage,
    )
    failed = facts.verdict.get("event") in FAILURES
    texts = {language: text_of(entry, remedy, language, failed=failed) for language in wire.LANGUAGES}
    return structs.replace(remedy, texts=texts)


def _can_be_had(facts: Facts) -> bool:
    """What a trend takes over the next steps may be more than the card has: no change frees that."""
    return facts.needed_bytes is None or facts.capacity_bytes is None or facts.needed_bytes <= facts.capacity_bytes


def override(key: str, value: wire.ConfigValue) -> str:
    """A line for verl's command line, as Hydra reads it. Every key here is in the version's own configuration."""
    text = f"[{value}]" if isinstance(value, str) and "," in value else str(value)
    return f"{key}={text}"
