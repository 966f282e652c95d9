"""The signals that rules watch, as they see them, but for those that another room exports under the same name."""

from collections.abc import Iterator

from oomwatch.core.signals import SIGNALS
from oomwatch.core.subject import Subject
from oomwatch.metrics import gpus, runs
from oomwatch.metrics.family import Family, Reading, Room, Rows, View
from oomwatch.metrics.names import labels_of, metric_of

_ELSEWHERE = {family.name for family in (*gpus.ROOM.families, *runs.ROOM.families)}
FAMILIES = {
    name: Family(metric_of(name), "gauge", f"{signal.about[:1].upper()}{signal.about[1:]}.", labels_of(name),
                 (" or ".join(signal.scopes),))
    for name, signal in SIGNALS.items()
    if metric_of(name) not in _ELSEWHERE
}  # fmt: skip


def _read(view: View) -> Iterator[Reading]:
    fleet = view.service.engine.fleet
    subjects = {scope: list(fleet.subjects(scope)) for scope in ("gpu", "node", "run")}
    for name, family in FAMILIES.items():
        of_it = [subject for scope in SIGNALS[name].scopes for subject in subjects[scope]]
        yield family.of(_values(view, name, of_it))


def _values(view: View, name: str, subjects: list[Subject]) -> Rows:
    fleet, read, labels = view.service.engine.fleet, SIGNALS[name].read, labels_of(name)
    for subject in subjects:
        value = read(fleet, subject, view.now)
        if value is not None:
            yield _labelled(subject, labels), value


def _labelled(subject: Subject, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Empty where it has none, which to Prometheus is the same as without the label."""
    is_run = subject.scope == "run"
    of_all = {"node": "" if is_run else subject.name, "gpu": subject.gpu, "run": subject.name if is_run else ""}
    return tuple(of_all[label] for label in labels)


ROOM = Room(tuple(FAMILIES.values()), _read)
