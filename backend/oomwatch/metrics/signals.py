"""The signals that rules watch, as they see them, but for those that another room exports under the same name."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from oomwatch.core.signals import SIGNALS
from oomwatch.core.subject import Subject
from oomwatch.metrics import gpus, runs
from oomwatch.metrics.family import Family, Room, Rows, View
from oomwatch.metrics.names import labels_of, metric_of

_ELSEWHERE = {family.name for family in (*gpus.ROOM.families, *runs.ROOM.families)}
FAMILIES = {
    name: Family(metric_of(name), "gauge", f"{signal.about[:1].upper()}{signal.about[1:]}.", labels_of(name),
                 (" or ".join(signal.scopes),))
    for name, signal in SIGNALS.items()
    if metric_of(name) not in _ELSEWHERE
}  # fmt: skip


def _collect(view: View) -> Iterator[Metric]:
    fleet = view.service.engine.fleet
    subjects = {scope: list(fleet.subjects(scope)) for scope in ("gpu", "node", "run")}
    for name, family in FAMILIES.items():
        of_it = [subject for scope in SIGNALS[name].scopes for subject in subjects[scope]]
        yield family.of(_values(view, name, of_it))


def _values(view: View, name: str, subjects: list[Subject]) -> Rows:
    fleet, read = view.service.engine.fleet, SIGNALS[name].read
    for subject in subjects:
        value = read(fleet, subject, view.now)
        if value is not None:
            yield tuple(_label(subject, label) for label in labels_of(name)), value


def _label(subject: Subject, label: str) -> str:
    """Empty where it has none, which to Prometheus is the same as without the label."""
    if label == "gpu":
        return subject.gpu
    return subject.name if (label == "run") == (subject.scope == "run") else ""


ROOM = Room(tuple(FAMILIES.values()), _collect)
