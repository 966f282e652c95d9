"""Which transitions make one message. Pure: lists in, lists out.

One message tells of one alert of one severity, firing or resolved, on everything of one run (without a run: of one
node). A run's 64 full GPUs are one message.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from oomwatch import wire
from oomwatch.notify.notice import Notice

TransitionKey: TypeAlias = tuple[str, str, float]  # id, state, at: tells one transition from every other


class Topic(NamedTuple):
    """What messages are about: firing and resolved of one topic share their timing."""

    alert: str
    severity: wire.Severity
    run: str | None
    node: str | None  # None where there is a run: its nodes belong together
    simulated: bool


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One message. `covers` names every transition that needs no other message once this one has arrived."""

    topic: Topic
    state: Literal["firing", "resolved"]
    transitions: tuple[wire.Transition, ...]  # by node and GPU
    covers: tuple[TransitionKey, ...]


def key_of(transition: wire.Transition) -> TransitionKey:
    return (transition.id, transition.state, transition.at)


def is_news(transition: wire.Transition) -> bool:
    """Whether people are to hear of it: of what adds to an alert, or lowers it, they are sent nothing."""
    if transition.quiet:
        return False
    return transition.change == "state" or (transition.change == "severity" and transition.lowered_from is None)


def severity_of(transition: wire.Transition) -> wire.Severity:
    """The one that people were told: that of its rule, though it was lowered since."""
    return transition.lowered_from or transition.severity


def topic_of(transition: wire.Transition) -> Topic:
    run = transition.labels.get("run")
    node = None if run is not None else transition.labels.get("node")
    return Topic(transition.alert, severity_of(transition), run, node, transition.simulated)


def group(transitions: Iterable[wire.Transition], *, merge_resolved: bool = True) -> list[Group]:
    """The messages to send, firing before resolved. Pending transitions are left out.

    With `merge_resolved`, an alert that fired and was resolved before anyone was told is told once, as resolved. A
    channel that is sent no resolutions would then hear nothing of it, and does without.
    """
    topics: dict[Topic, list[wire.Transition]] = {}
    for transition in transitions:
        if transition.state != "pending":
            topics.setdefault(topic_of(transition), []).append(transition)
    return [one for topic, members in topics.items() for one in _groups(topic, members, merge_resolved)]


def _groups(topic: Topic, members: Sequence[wire.Transition], merge_resolved: bool) -> list[Group]:
    resolved = [one for one in members if one.state == "resolved"]
    firing = [one for one in members if one.state == "firing"]
    ended = {one.id for one in resolved} if merge_resolved else set()
    untold = [one for one in firing if one.id in ended]
    firing = [one for one in firing if one.id not in ended]
    found = []
    if firing:
        found.append(Group(topic=topic, state="firing", transitions=_sorted(firing), covers=_keys(firing)))
    if resolved:
        covers = _keys([*untold, *resolved])
        found.append(Group(topic=topic, state="resolved", transitions=_sorted(resolved), covers=covers))
    return found


def _keys(transitions: Iterable[wire.Transition]) -> tuple[TransitionKey, ...]:
    return tuple(dict.fromkeys(key_of(one) for one in transitions))


def _sorted(transitions: Iterable[wire.Transition]) -> tuple[wire.Transition, ...]:
    latest = {one.id: one for one in sorted(transitions, key=lambda one: one.at)}
    return tuple(sorted(latest.values(), key=_place))


def _place(transition: wire.Transition) -> tuple[str, int, str, float]:
    """Nodes by name, their GPUs by number: GPU 10 comes after GPU 9."""
    gpu = transition.labels.get("gpu", "")
    number = gpu.partition(":")[0]
    rank = int(number) if number.isascii() and number.isdigit() else -1
    return (transition.labels.get("node", ""), rank, gpu, transition.started_at)


def notice_of(group: Group, now: float) -> Notice:
    """The message that tells of a group."""
    topic = group.topic
    known = {"alert": topic.alert, "severity": topic.severity, "run": topic.run, "node": topic.node}
    digest = hashlib.sha256(msgspec.json.encode(sorted(group.covers))).hexdigest()[:32]
    return Notice(
        id=f"msg_{digest}",
        kind=group.state,
        incident=digest,
        made_at=now,
        labels={name: value for name, value in known.items() if value is not None},
        severity=topic.severity,
        state=group.state,
        news=group.transitions,
        everything=group.transitions,
        simulated=topic.simulated,
    )
