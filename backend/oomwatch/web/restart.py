"""What the server knew before it was stopped, from the database into the engine, before any agent is let in."""

import heapq
import logging
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from oomwatch import wire
from oomwatch.core.noderecord import STALE_SECONDS_MIN
from oomwatch.core.window import WINDOW_SECONDS_MAX
from oomwatch.service.service import Service
from oomwatch.store.store import KnownNode, Store
from oomwatch.story import UNJUDGED_SECONDS

# As far back as the engine looks: peaks of readings over a step, what is usual of a run's steps, windows of events.
SAMPLES_SECONDS = 900.0
SAMPLES_MAX = 20_000  # of a large fleet fewer seconds: of 128 nodes of 8 GPUs 156, which take a second or two
STEPS_SECONDS = 86_400.0
EVENTS_SECONDS = WINDOW_SECONDS_MAX
# A configuration is printed once, when its run begins, and what its job is called is told every few hours.
LASTING = frozenset({"step", "config", "run_named"})
ENDED_SECONDS = 86_400.0
ENDED_SHOWN = 100
OPEN_MAX = 100_000

logger = logging.getLogger(__name__)


def restore(service: Service, store: Store) -> None:
    """Fill the engine. It blocks: until it is done there is nobody to wait. Raises StoreError.

    What the database dates later than now was stored while the clock of this machine was wrong: readings and events are
    left out, alerts and nodes count as of now.
    """
    now = service.started_at
    known = [node._replace(last_seen=min(now, node.last_seen)) for node in store.nodes()]
    told = [_not_later(one, now) for one in store.unfinished(now - UNJUDGED_SECONDS)]
    service.recall(_messages(store, known, now), heard_at(known, told, now))
    service.remember(store.pasts())
    service.muting.put_silences(store.silences(now))
    ended = store.alerts(state="resolved", since=now - ENDED_SECONDS, limit=ENDED_SHOWN)
    firing = store.alerts(state="firing", limit=OPEN_MAX)
    service.restore(told, [*sorted(ended, key=lambda alert: alert.ended_at or 0.0), *reversed(firing)])
    if known:
        logger.info("remembered %d nodes and %d open alerts", len(known), len(firing))


def _not_later(firing: wire.Transition, now: float) -> wire.Transition:
    return msgspec.structs.replace(firing, at=min(now, firing.at), started_at=min(now, firing.started_at))


def heard_at(known: Sequence[KnownNode], firing: Iterable[wire.Transition], now: float) -> dict[str, float]:
    """When each node counts as heard last: now, less the silence that it had kept when the server stopped.

    The time without a server is nobody's silence. When that began, the newest thing in the database tells.
    """
    newest = max([node.last_seen for node in known] + [transition.at for transition in firing], default=now)
    silence = {node.hello.node: newest - node.last_seen for node in known}
    return {name: now - seconds if seconds > STALE_SECONDS_MIN else now for name, seconds in silence.items()}


def _messages(store: Store, known: Sequence[KnownNode], now: float) -> Iterator[tuple[str, wire.AgentMessage]]:
    yield from ((node.hello.node, node.hello) for node in known)
    yield from store.recent_samples(now - min(SAMPLES_SECONDS, SAMPLES_MAX / max(1, len(known))), now)
    lasting = store.recent_events(now - STEPS_SECONDS, now, kinds=LASTING)
    others = store.recent_events(now - EVENTS_SECONDS, now, kinds=wire.EVENT_KINDS - LASTING)
    # In the order of time: a run's phases are told by marks and step lines in turn.
    yield from heapq.merge(lasting, others, key=lambda told: told[1].at)
    yield from ((node.hello.node, wire.Bye(seq=0, at=node.last_seen)) for node in known if node.stopped)
