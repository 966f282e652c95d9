"""Before it dies: asks agents for what a rule wants done when it fires, and tells with the alert what came of it.

What is done is decided twice: the rule says what is wanted (`before_it_dies`), and each node's agent what it permits.
"""

import logging
from collections.abc import Callable, Iterator, Sequence

import msgspec

from oomwatch import wire
from oomwatch.core.engine import Engine
from oomwatch.core.subject import Subject
from oomwatch.service.board import Board
from oomwatch.service.sessions import Peer, Roster
from oomwatch.story import transition_of

_APART_SECONDS = 1e-3  # two things told of one alert bear different times

logger = logging.getLogger(__name__)

Announce = Callable[[Sequence[wire.Transition]], None]


class Acting:
    """`announce` stores transitions and tells of them."""

    def __init__(self, engine: Engine, roster: Roster, board: Board, announce: Announce) -> None:
        self._engine = engine
        self._roster = roster
        self._board = board
        self._announce = announce
        self._told_at: dict[str, float] = {}  # by alert, of those that are open

    # ------------------------------------------------------------ asking

    def ask(self, transition: wire.Transition, alert: wire.Alert, now: float) -> None:
        """An alert was stored and told: have done what its rule wants done, once it is critical."""
        acts = self._wanted(transition)
        for node in self._nodes(transition) if acts else ():
            peer = self._peer(node)
            if peer is None:
                detail = "the agent of this node is not connected"
                self._tell(alert, [wire.Act(act=act, at=now, node=node, ok=False, detail=detail) for act in acts])
                continue
            logger.warning("asking the agent of node %s for %s because of alert %s", node, ", ".join(acts), alert.id)
            peer.ask(self._request(alert, acts))

    def _wanted(self, transition: wire.Transition) -> tuple[str, ...]:
        is_news = transition.change in ("state", "severity") and transition.state == "firing"
        if not is_news or transition.severity != "critical":
            return ()
        rule = self._engine.rules.of(transition)
        return rule.before_it_dies if rule is not None else ()

    def _nodes(self, transition: wire.Transition) -> Iterator[str]:
        """The node of the alert; of one of a whole run, all nodes of the run."""
        node, run = transition.labels.get("node"), self._engine.fleet.runs.get(transition.labels.get("run", ""))
        if node is not None:
            yield node
        elif run is not None:
            yield from run.nodes

    def _peer(self, node: str) -> Peer | None:
        session = self._roster.find(node)
        return (session.peer or session.elsewhere) if session is not None else None

    def _request(self, alert: wire.Alert, acts: tuple[str, ...]) -> wire.ActRequest:
        run = alert.labels.get("run")
        step_seconds = self._engine.fleet.rhythm_seconds(Subject("run", run)) if run is not None else 0.0
        return wire.ActRequest(
            id=alert.id, alert=alert, acts=acts, gpu=alert.labels.get("gpu"), step_seconds=step_seconds or None
        )

    # ------------------------------------------------------------ telling

    def hear(self, event: wire.Event, done: wire.ActDone, node: str) -> None:
        """An agent tells what came of an act. Of an alert that is long over, or another node's, nothing is told."""
        alert = self._board.find(done.id)
        if alert is None or alert.labels.get("node", node) != node:
            logger.warning("node %s tells of an act for the alert %s, which is not known (any more)", node, done.id)
            return
        act = wire.Act(
            act=done.act, at=event.at, node=node, ok=done.ok, detail=done.detail, path=done.path, seconds=done.seconds
        )
        self._tell(alert, [act])

    def _tell(self, alert: wire.Alert, acts: Sequence[wire.Act]) -> None:
        at = max(acts[-1].at, self._told_at.get(alert.id, 0.0) + _APART_SECONDS)
        here = {one.id for one in self._board.all()}
        self._told_at = {key: told for key, told in self._told_at.items() if key in here} | {alert.id: at}
        self._announce([transition_of(alert, at=at, change="acts", acts=tuple(acts))])

    def with_acts(self, transition: wire.Transition) -> wire.Transition:
        """The end of an alert with what was done while it was open: whoever is told of the one is told of the other."""
        alert = self._board.find(transition.id) if transition.state == "resolved" else None
        if alert is None or transition.change != "state":
            return transition
        return msgspec.structs.replace(transition, acts=alert.acts)
