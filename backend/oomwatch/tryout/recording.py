"""The database's last hours as the trace that an engine would have been given, of all nodes in the order of time.

What the database does not keep is missing here: processes, each rollout engine for itself (they are joined into one),
what was known of a node before its last hello, and how runs went that were over before.
"""

import heapq
from collections.abc import Collection, Iterator
from math import ceil, floor

import msgspec
from msgspec import Struct

from oomwatch import wire
from oomwatch.store.store import KnownNode, Store
from oomwatch.trace import Line

# As far back as a server looks when it starts (web/restart.py): the engine knows by then what it would have known.
WARM_SECONDS = 900.0
STEPS_SECONDS = 86_400.0
LASTING = frozenset({"step", "config", "run_named"})
# The engine takes its grid up again ten minutes back after a longer standstill (core.grid.GRID_POINTS_MAX).
HOP_SECONDS = 300.0
EVENTS_SECONDS = 3600.0  # so many at a time

Told = tuple[str, wire.Sample | wire.Event]


class Chosen(Struct, frozen=True, kw_only=True):
    """What is judged: these nodes, and of their events those of these runs, or of none.

    `told_of`: nodes of which readings are wanted. The others only read the logs of the runs.
    """

    nodes: tuple[KnownNode, ...]
    told_of: frozenset[str]
    runs: frozenset[str] | None = None  # None: all

    def wants(self, node: str, event: wire.Event) -> bool:
        return self.runs is None or event.run in self.runs or (event.run is None and node in self.told_of)


class NothingChosenError(ValueError):
    """There is no such node or run, or no node at all. The text says what there is."""


def choose(store: Store, *, node: str | None = None, run: str | None = None) -> Chosen:
    """The nodes to judge: all, one, those of a run, or one within a run. Raises NothingChosenError and StoreError."""
    known = store.nodes()
    runs = store.runs()
    names = [one.hello.node for one in known]
    if node is not None and node not in names:
        raise NothingChosenError(_nothing("node", node, names))
    if run is not None and run not in {one.run for one in runs}:
        raise NothingChosenError(_nothing("run", run, [one.run for one in runs]))
    if not known:
        raise NothingChosenError("the database knows of no node yet: there is nothing to try rules on")
    if node is None and run is None:
        return Chosen(nodes=tuple(known), told_of=frozenset(names))
    of_run = [one for one in runs if one.run == run or (run is None and node in one.nodes)]
    own = {node} if node is not None else {name for one in of_run for name in one.nodes}
    near = own | {name for one in of_run for name in one.nodes}
    return Chosen(
        nodes=tuple(one for one in known if one.hello.node in near),
        told_of=frozenset(own),
        runs=frozenset(one.run for one in of_run),
    )


def _nothing(kind: str, name: str, known: Collection[str]) -> str:
    told = ", ".join(sorted(known)[:20]) or "none"
    return f'the database knows of no {kind} "{name}"; it knows {told}{", ..." if len(known) > 20 else ""}'  # noqa: PLR2004


def lines_of(store: Store, chosen: Chosen, start: float, end: float, *, recalled: bool = True) -> Iterator[Line]:
    """The trace from `start` to `end`, with what is recalled of the time before, if so wished. Raises StoreError.

    A node says hello with the first that is told of it: one that came later was not silent until then.
    """
    hellos = {known.hello.node: known.hello for known in chosen.nodes}
    for node, message in _before(store, chosen, start) if recalled else ():
        yield from _greeted(hellos, node, start)
        yield Line(now=start, node=node, message=message, recalled=True)
    now = start
    yield Line(advance=now)
    for node, message in _messages(store, chosen, start, end):
        at = max(now, message.at)
        yield from _passed(now, at)
        now = at
        yield from _greeted(hellos, node, now)
        yield Line(now=now, node=node, message=message)
    yield from _passed(now, end)


def _greeted(hellos: dict[str, wire.Hello], node: str, now: float) -> Iterator[Line]:
    """The hello of a node that has not said it yet, which is then no longer among these."""
    hello = hellos.pop(node, None)
    if hello is not None:
        yield Line(now=now, node=node, message=msgspec.structs.replace(hello, sent_at=now), recalled=True)


def first_told_at(store: Store, chosen: Chosen, start: float, end: float) -> float:
    """When the first message of that time came, or its end where none did. Raises StoreError."""
    return next((message.at for _, message in _messages(store, chosen, start, end)), end)


def _passed(now: float, until: float) -> Iterator[Line]:
    """The live server looks at its clock each second; the engine makes up for those in between."""
    if floor(until) <= floor(now):
        return
    for hop in range(1, ceil((until - now) / HOP_SECONDS)):
        yield Line(advance=now + hop * HOP_SECONDS)
    yield Line(advance=until)


def _before(store: Store, chosen: Chosen, start: float) -> Iterator[Told]:
    yield from store.samples_in_order(start - WARM_SECONDS, start - 0.001, chosen.told_of)
    lasting = store.recent_events(start - STEPS_SECONDS, start, kinds=LASTING)
    others = store.recent_events(start - WARM_SECONDS, start, kinds=wire.EVENT_KINDS - LASTING)
    told = heapq.merge(lasting, others, key=_at)
    yield from ((node, event) for node, event in told if event.at < start and chosen.wants(node, event))


def _messages(store: Store, chosen: Chosen, start: float, end: float) -> Iterator[Told]:
    samples = store.samples_in_order(start, end, chosen.told_of)
    return heapq.merge(samples, _events(store, chosen, start, end), key=_at)


def _at(told: Told) -> float:
    return told[1].at


def _events(store: Store, chosen: Chosen, start: float, end: float) -> Iterator[Told]:
    for begin in (start + EVENTS_SECONDS * place for place in range(ceil((end - start) / EVENTS_SECONDS))):
        until = begin + EVENTS_SECONDS
        for node, event in store.recent_events(begin, min(until, end)):
            if chosen.wants(node, event) and (event.at < until or until >= end):
                yield node, event
