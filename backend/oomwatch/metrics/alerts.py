"""Alerts by rule, and each that is open. The severity is the one that people are told."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from oomwatch.core.lifecycle import Episode
from oomwatch.metrics.family import Family, Reading, Room, Rows, View

LISTED_MAX = 4096  # open alerts; the oldest are listed, the rest is counted: one bad rule must not flood Prometheus
STATES = ("pending", "firing")
_RULE = ("alert", "severity")
FIRING = Family("oomwatch_alerts_firing", "gauge",
                "Alerts that fire now, by the rule's own severity; 0 where none does.", _RULE, ("rule",))  # fmt: skip
ALERTS = Family("oomwatch_alerts", "gauge",
                "Alerts by state. One that is steady, and so told for information, counts as info.",
                (*_RULE, "state"), ("rule", "severity told", "state"))  # fmt: skip
EACH = Family("oomwatch_alert_firing", "gauge", "1 for each alert that fires; labels that it lacks are empty.",
              (*_RULE, "node", "gpu", "run"), ("alert listed",))  # fmt: skip
MUTED = Family("oomwatch_alerts_muted", "gauge", "Open alerts that nobody is sent for now, by the reason.",
               (*_RULE, "kind"), ("rule", "severity told", "mute kind"))  # fmt: skip
ACKNOWLEDGED = Family("oomwatch_alerts_acknowledged", "gauge", "Open alerts that somebody takes care of.",
                      _RULE, ("rule", "severity told"))  # fmt: skip
UNLISTED = Family("oomwatch_alerts_unlisted", "gauge",
                  f"Alerts that fire beyond the {LISTED_MAX} that are listed one by one.")  # fmt: skip


def _read(view: View) -> Iterator[Reading]:
    episodes = view.service.engine.episodes()
    firing = [episode for episode in episodes if episode.fired_at is not None]
    rules = [(rule.alert, rule.severity) for rule in view.service.engine.rules.in_use()]
    of_rules = Counter((one.rule.alert, one.rule.severity) for one in firing)
    yield FIRING.of((rule, of_rules[rule]) for rule in dict.fromkeys([*rules, *of_rules]))
    told = Counter((*_told(one), STATES[one.fired_at is not None]) for one in episodes)
    known = [(*rule, state) for rule in rules for state in STATES]
    yield ALERTS.of((key, told[key]) for key in dict.fromkeys([*known, *told]))
    yield EACH.of(_each(firing))
    shown = list(view.service.board.open())
    kinds = Counter(
        (one.alert, one.severity, kind) for one in shown for kind in {mute.kind: None for mute in one.muted}
    )
    yield MUTED.of(kinds.items())
    yield ACKNOWLEDGED.of(Counter((one.alert, one.severity) for one in shown if one.acknowledged).items())
    yield UNLISTED.one(max(0, len(firing) - LISTED_MAX))


def _told(episode: Episode) -> tuple[str, str]:
    return episode.rule.alert, "info" if episode.lowered else episode.rule.severity


def _each(firing: list[Episode]) -> Rows:
    """Once each: a rule that is lowered to info may have a twin that is info from the start."""
    subjects = ((*_told(one), *(one.labels.get(name, "") for name in ("node", "gpu", "run"))) for one in firing)
    yield from ((labels, 1.0) for labels in islice(dict.fromkeys(subjects), LISTED_MAX))


ROOM = Room((FIRING, ALERTS, EACH, MUTED, ACKNOWLEDGED, UNLISTED), _read)
