"""Which alerts belong together, and how a message of them is called. Pure.

By default a message tells of one alert of one severity on everything of one run (without a run: of one node). A run's
64 full GPUs are one message.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.core.mute.matcher import labels_of
from oomwatch.core.rule import severity_of
from oomwatch.letters import TransitionKey


class Group(NamedTuple):
    """What shares a message, and the pause to the next one. Simulated alerts never share one with real ones."""

    path: str  # of the route
    labels: tuple[tuple[str, str], ...]
    simulated: bool


def told_labels(transition: wire.Transition) -> dict[str, str]:
    """What routes see: they stay the same for as long as the alert lives."""
    return labels_of(transition) | {"severity": severity_of(transition)}


def group_of(labels: Mapping[str, str], path: str, group_by: tuple[str, ...] | None, *, simulated: bool) -> Group:
    """`group_by`: None for alert, severity, and run or, without one, node."""
    if group_by is None:
        group_by = ("alert", "severity", "run" if "run" in labels else "node")
    return Group(path, tuple((name, labels[name]) for name in group_by if name in labels), simulated)


def in_order(transitions: Iterable[wire.Transition]) -> tuple[wire.Transition, ...]:
    """Nodes by name, their GPUs by number: GPU 10 comes after GPU 9."""
    return tuple(sorted(transitions, key=_place))


def _place(transition: wire.Transition) -> tuple[str, int, str, float]:
    gpu = transition.labels.get("gpu", "")
    number = gpu.partition(":")[0]
    rank = int(number) if number.isascii() and number.isdigit() else -1
    return (transition.labels.get("node", ""), rank, gpu, transition.started_at)


def incident_id(group: Group, news: Iterable[wire.Transition]) -> str:
    """The same in every channel: of the group, and of its first alert. Of two that began at one moment the second may
    fire when the incident of the first is over."""
    started_at, first = min((one.started_at, one.id) for one in news)
    return f"inc_{digest((group.path, sorted(group.labels), group.simulated, started_at, first))}"


def notice_id(channel: str, kind: str, covers: Iterable[TransitionKey]) -> str:
    """The same for all that says the same, so that a receiver drops what it knows even where nothing was kept of it."""
    return f"msg_{digest((channel, kind, sorted(covers)))}"


def repeat_id(channel: str, kind: str, incident: str, after: float) -> str:
    """Of a message that tells no change: known by the time of the one before it."""
    return f"msg_{digest((channel, kind, incident, after))}"


def digest(what: object) -> str:
    """Of anything that JSON can say, the same in every process."""
    return hashlib.sha256(msgspec.json.encode(what)).hexdigest()[:32]
