"""Whom an alert goes to: a tree by its labels, with Alertmanager's meaning. Pure.

An alert enters at the root, which takes everything, and goes down into the first child whose matchers hold; with
`continue` it goes on to the next sibling as well. Where no child takes it, it stays. What a route does not say, its
parent says.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from oomwatch import wire
from oomwatch.core.mute.matcher import LABELS, matches, parse_matcher
from oomwatch.notify.channel import ChannelName, Section
from oomwatch.units import Duration

Place: TypeAlias = tuple[str | int, ...]
"""Where in the section something stands: ("routes", 0, "channels", 1)."""


class Condition(str):
    """A matcher as a person wrote it, and it can be read."""

    __slots__ = ()

    @property
    def matcher(self) -> wire.Matcher:
        return parse_matcher(self)


class Escalation(Section, frozen=True, kw_only=True):
    """Who is told what nobody has acknowledged `after` it fired. No channels: nobody, whatever the parent says."""

    after: Duration
    channels: tuple[ChannelName, ...]

    def __post_init__(self) -> None:
        if self.channels and self.after <= 0:
            raise ValueError("escalation needs a time: after must be more than 0s")


class Route(Section, frozen=True, kw_only=True):
    """One route of the tree. None: as its parent."""

    match: tuple[Condition, ...] = ()
    channels: tuple[ChannelName, ...] | None = None
    goes_on: bool = msgspec.field(default=False, name="continue")
    group_by: tuple[str, ...] | None = None
    group_wait: Duration | None = None
    group_interval: Duration | None = None
    repeat_interval: Duration | None = None
    escalate: Escalation | None = None
    routes: "tuple[Route, ...]" = ()


class Timing(NamedTuple):
    """All in seconds."""

    wait: float  # how long the first message of a group waits for company
    interval: float  # least time between two messages of a group
    repeat: float  # a group that fires still is told again so often; 0: never


class Target(NamedTuple):
    """One channel that is to hear of an alert."""

    channel: str
    path: str  # of the route: "" is the root, "0/1" the second child of its first
    group_by: tuple[str, ...] | None  # None: alert, severity, and run or else node
    timing: Timing
    escalate_after: float | None = None  # seconds; None: at once


class Router:
    """The tree with everything inherited."""

    def __init__(self, route: Route | None, channels: Sequence[str], timing: Timing) -> None:
        """`channels`: what the root means where it names none. `timing`: where it says none."""
        root = _Branch((), False, "", tuple(channels), None, timing, None)
        self._root = _grown(route or Route(), root, "")

    def stray(self, channel: str) -> Target:
        """For a channel that was told of an alert which is not meant for it any more."""
        return Target(channel, "", None, self._root.timing)

    def targets(self, labels: Mapping[str, str]) -> list[Target]:
        """By labels, with alert and severity among them. A channel is named once: at once rather than later."""
        found: dict[str, Target] = {}
        branches = _taken(self._root, labels)
        for target in (*_direct(branches), *_later(branches)):
            found.setdefault(target.channel, target)
        return list(found.values())


class _Branch(NamedTuple):
    matchers: tuple[wire.Matcher, ...]
    goes_on: bool
    path: str
    channels: tuple[str, ...]
    group_by: tuple[str, ...] | None
    timing: Timing
    escalate: Escalation | None
    children: tuple["_Branch", ...] = ()


def _grown(route: Route, parent: _Branch, path: str) -> _Branch:
    escalate = parent.escalate if route.escalate is None else route.escalate
    branch = _Branch(
        matchers=tuple(condition.matcher for condition in route.match),
        goes_on=route.goes_on,
        path=path,
        channels=parent.channels if route.channels is None else route.channels,
        group_by=parent.group_by if route.group_by is None else route.group_by,
        timing=Timing(
            *(old if new is None else float(new) for old, new in zip(parent.timing, _timing(route), strict=True))
        ),
        escalate=escalate,
    )
    children = [_grown(child, branch, f"{path}/{at}".lstrip("/")) for at, child in enumerate(route.routes)]
    return branch._replace(children=tuple(children))


def _timing(route: Route) -> tuple[Duration | None, ...]:
    return (route.group_wait, route.group_interval, route.repeat_interval)


def _taken(branch: _Branch, labels: Mapping[str, str]) -> list[_Branch]:
    if not matches(branch.matchers, labels):
        return []
    found: list[_Branch] = []
    for child in branch.children:
        taken = _taken(child, labels)
        found += taken
        if taken and not child.goes_on:
            break
    return found or [branch]


def _direct(branches: Sequence[_Branch]) -> Iterator[Target]:
    for one in branches:
        for channel in one.channels:
            yield Target(channel, one.path, one.group_by, one.timing)


def _later(branches: Sequence[_Branch]) -> Iterator[Target]:
    for one in branches:
        for channel in one.escalate.channels if one.escalate else ():
            yield Target(
                channel, one.path, one.group_by, one.timing, float(one.escalate.after) if one.escalate else None
            )


# ---------------------------------------------------------------- mistakes


def mistakes(root: Route, channels: Sequence[str]) -> Iterator[tuple[Place, str]]:
    """What is wrong with a tree beyond its shape, each with its place."""
    if root.match or root.goes_on:
        yield ("match" if root.match else "continue",), "the first route takes everything; put this into a child of it"
    yield from _mistakes(root, channels, ())


def _mistakes(route: Route, channels: Sequence[str], at: Place) -> Iterator[tuple[Place, str]]:
    named = [((*at, "channels", number), name) for number, name in enumerate(route.channels or ())]
    if route.escalate is not None:
        place = (*at, "escalate", "channels")
        named += [((*place, number), name) for number, name in enumerate(route.escalate.channels)]
    for where, name in named:
        if name not in channels:
            yield where, f'there is no channel "{name}"; there are {", ".join(channels) or "none"}'
    for number, label in enumerate(route.group_by or ()):
        if label not in LABELS:
            yield (*at, "group_by", number), f'alerts have no label "{label}"; known are {", ".join(LABELS)}'
    for number, child in enumerate(route.routes):
        yield from _mistakes(child, channels, (*at, "routes", number))
