"""The one owner of the engine: what arrives is judged, kept, told and shown here.

Everything that touches the engine is a plain method, called from the event loop, that never waits: between two of them
nothing is half done. What waits (the database, the network) is at the other end of the journal, the audience and the
herald. Agents come in through `reception`; the clock is read by the timepiece alone.
"""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet

from oomwatch import __version__, wire
from oomwatch.core.past import Past
from oomwatch.core.rule import RuleSet
from oomwatch.service.acting import Acting
from oomwatch.service.attention import Attention, Outside
from oomwatch.service.board import Board
from oomwatch.service.defects import Defects
from oomwatch.service.journal import Journal
from oomwatch.service.logbook import Logbook
from oomwatch.service.measured import Histogram
from oomwatch.service.muting import Muting
from oomwatch.service.picture import Picture
from oomwatch.service.reception import Reception
from oomwatch.service.recorded import RecordedEngine
from oomwatch.service.saying import Saying
from oomwatch.service.seams import Audience, Chorus, Herald, Incidents, Recorder
from oomwatch.service.sessions import Roster
from oomwatch.service.timepiece import Timepiece, steady_clock
from oomwatch.story import transition_of
from oomwatch.wording import rule_view

BEAT_SECONDS = 1.0
FORGET_SECONDS = 86_400.0  # a node or run of which nothing was heard for so long is taken off the page
FORGETTING_SECONDS = 3600.0  # how often that is looked for
WORDED_AT_ONCE = 1000  # open alerts that are put into words within one second's work: a tenth of a second
STUCK_SECONDS = 10.0  # a second's work that is so late is no load any more, but a defect


class Service:
    """See the module. `journal` has to be set (`attach`) before anything is taken."""

    def __init__(
        self,
        rules: RuleSet,
        audience: Audience,
        herald: Herald,
        *,
        recorder: Recorder | None = None,
        incidents: Incidents | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = steady_clock,
    ) -> None:
        self.clock = clock
        self.started_at = clock()
        self._time = Timepiece(clock, steady, self._clock_jumped, self._excuse_silence)
        self._judge = RecordedEngine(rules, recorder)
        self.engine = self._judge.engine
        self.defects = Defects(steady)
        self.judging = Histogram()
        self._logbook = Logbook(steady)
        self._say = Saying(self.engine, self.defects, incidents)
        self.roster = Roster(steady)
        self.reception = Reception(self.roster, self.engine.fleet, self._time.now, self._observe)
        self.board = Board(self._say)
        self.acting = Acting(self.engine, self.roster, self.board, self._announce)
        self.muting = Muting()
        self.attention = Attention(self.muting, Outside(self._view, self._keep_ours, audience, self._time.now))
        self.picture = Picture(self.engine.fleet, self._skew_of)
        self.journal: Journal
        self.chorus: Chorus | None = None  # with other servers
        self.on_told: Callable[[Sequence[wire.Transition]], None] = lambda _: None
        self.rules_error: str | None = None
        self._beat_at = self._forget_at = self._time.steady_at  # of what the database remembers, some may be long gone
        self._has_paused = self._has_passed_over = False
        self._audience = audience
        self._herald = herald
        self._channels: tuple[wire.ChannelState, ...] = ()  # as browsers were told of them

    def attach(self, journal: Journal) -> None:
        """The journal tells people through `tell`, and so can only be made after the service."""
        self.journal = self.reception.journal = journal

    def _clock_jumped(self, seconds: float) -> None:
        self._judge.clock_jumped(seconds)
        self.board.clock_jumped(seconds)
        self.muting.look_again()
        for session in self.roster:
            session.clock_jumped(seconds)

    def _excuse_silence(self, seconds: float) -> None:
        """Nobody was heard, since nobody listened."""
        if self.chorus is not None:
            self.chorus.stood_still()
        self._judge.excuse_silence(seconds)
        for session in self.roster:
            session.heard_at += seconds
        self._has_paused = True

    # ------------------------------------------------------------ judging

    def _observe(self, message: wire.AgentMessage, node: str, now: float) -> None:
        try:
            self._announce(self._timed(lambda: self._judge.observe(message, node, now)))
            self.picture.note(message, node)
            if isinstance(message, wire.Event) and isinstance(message.body, wire.ActDone):
                self.acting.hear(message, message.body, node)
        except Exception as error:
            self.defects.note_unjudged(f"judging a message of node {node}", error)
        self.defects.own_up(self.engine)

    def beat(self) -> None:
        """A second has passed: judge what time changes, and show what is new.

        After a pause the frames that queued up meanwhile come first: what time changes is judged a second later.
        """
        now = self._time.now()
        self._has_passed_over, self._has_paused = self._has_paused and not self._has_passed_over, False
        if self._has_passed_over:
            return
        self._beat_at = self._time.steady_at
        with self.defects.judging("judging what time changes"):
            self._announce(self._timed(lambda: self._judge.advance(now)))
        self.defects.own_up(self.engine)
        with self.defects.going_on("muting"):
            self.attention.settle(now)
        if self._beat_at >= self._forget_at:
            self._forget_at = self._beat_at + FORGETTING_SECONDS
            self._forget(now - FORGET_SECONDS)
        with self.defects.going_on("showing what is new"):
            self._publish_changes(now)
            alerts = self.board.refresh(self.engine.episodes(), now, except_for=self._awaited(), at_most=WORDED_AT_ONCE)
            self._audience.publish([*self.picture.readings(now), *(wire.AlertChanged(alert=alert) for alert in alerts)])

    def _timed(self, judge: Callable[[], list[wire.Transition]]) -> list[wire.Transition]:
        began = self._time.steady()
        judged = judge()
        self.judging.add(self._time.steady() - began)
        return judged

    def seconds_since_beat(self) -> float:
        return self._time.steady() - self._beat_at

    # ------------------------------------------------------------ forgetting

    def knows(self, node: str) -> bool:
        """Whether there is anything to forget of a node: itself, or an alert of it."""
        return node in self.engine.fleet.nodes or any(
            episode.labels.get("node") == node for episode in self.engine.episodes()
        )

    def retire(self, node: str) -> None:
        """A person says that a node is gone for good: its alerts end, nothing is left. Raises StillConnectedError."""
        self.roster.check_gone(node)
        now = self._time.now()
        is_simulated = self._say.is_simulated({"node": node})
        runs = set(self.engine.fleet.runs)
        ended = self._judge.retire(node, now)
        self._keep([self._say.by(self.engine.rules, one, simulated=is_simulated) for one in ended])
        self._tell_forgotten([node], [run for run in runs if run not in self.engine.fleet.runs])

    def _forget(self, before: float) -> None:
        with self.defects.going_on("forgetting what is long gone"):
            self._tell_forgotten(*self._judge.forget(before))

    def _tell_forgotten(self, nodes: Sequence[str], runs: Sequence[str]) -> None:
        self.roster.forget(nodes)
        if nodes or runs:
            self._audience.publish([self.picture.forget(nodes, runs)])

    # ------------------------------------------------------------ rules and restarts

    def replace_rules(self, rules: RuleSet) -> None:
        """Put other rules in force; `report_rules` shows them. What they end is said in the words of the old ones."""
        old = self.engine.rules
        ended = self._judge.replace_rules(rules, self._time.now())
        if self.chorus is not None:
            ended = self.chorus.ours(ended)
        self.defects.forgive_rules()
        self._keep([self._say.by(old, one, simulated=self._say.is_simulated(one.labels)) for one in ended])

    def report_rules(self, error: str | None) -> None:
        """Show which rules are in force, and what is wrong with their file."""
        self.rules_error = error
        self._audience.publish([wire.RulesChanged(server=self.server_info(), rules=self.rules())])

    def recall(self, messages: Iterable[tuple[str, wire.AgentMessage]], heard_at: dict[str, float]) -> None:
        """Take stored (node, message) pairs in, before any agent is admitted. A node's hello comes first.

        `heard_at`: when each node counts as heard last. It had no time to connect again yet.
        """
        for node, message in messages:
            self._judge.recall(message, node, heard_at.get(node, self.started_at))

    def remember(self, pasts: Sequence[Past]) -> None:
        """Take in what is stored of the runs that were, after `recall`."""
        self._judge.remember(pasts)

    def restore(self, told: Sequence[wire.Transition], alerts: Iterable[wire.Alert]) -> None:
        """Go on with the alerts that were open before a restart, or without an outcome yet.

        `told`: all their transitions (core.engine.Engine.restore). `alerts`: what people were shown, oldest first.
        """
        now = self._time.now()
        self.board.remember(alerts, now)
        self.muting.restore(told)
        self._announce(self._judge.restore(told, now))
        self.board.refresh(self.engine.episodes(), now, except_for=self._awaited())

    # ------------------------------------------------------------ several servers

    def follow(self, words: Sequence[wire.Transition]) -> None:
        """Another server, which judges the same, has said these, in words. They are stored, or will be."""
        now = self._time.now()
        for word in words:
            with self.defects.judging("following what another server said"):
                self._judge.follow(word, now)
                self._say.note(word, self.clock())
        with self.defects.going_on("showing what another server said"):
            self.muting.restore(words)
            self._show(words, now)
        with self.defects.judging("telling people"):
            self._herald.offer(words)

    def speak(self, found: Sequence[wire.Transition], orphans: Sequence[wire.Alert]) -> None:
        """It has become ours to say what was found, and to go on with alerts that are not open here."""
        with self.defects.judging("saying what another server was to say"):
            self._say_and_keep(found)
        with self.defects.judging("going on with another server's alerts"):
            told = [transition_of(alert, at=alert.told_at or alert.started_at, change="state") for alert in orphans]
            self._announce(self._judge.restore(told, self._time.now()))

    def excuse(self, nodes: Collection[str], seconds: float) -> None:
        """We were cut off from these for so long, and others may have heard them."""
        self._judge.excuse_silence(seconds, nodes)

    def retire_quietly(self, node: str) -> None:
        """The same as `retire`, where another server says so. Nothing, where its agent is connected again."""
        session = self.roster.find(node)
        if node not in self.engine.fleet.nodes or (session is not None and session.is_connected):
            return
        runs = set(self.engine.fleet.runs)
        self._judge.retire(node, self._time.now())
        self._tell_forgotten([node], [run for run in runs if run not in self.engine.fleet.runs])

    def _awaited(self) -> AbstractSet[str]:
        """Ids of alerts of which a transition is on its way, which is what counts."""
        in_flight = self.journal.in_flight
        if self.chorus is None:
            return in_flight
        return in_flight | self.chorus.awaited(self.board.open(), {one.id for one in self.engine.episodes()})

    # ------------------------------------------------------------ telling

    def _announce(self, transitions: Sequence[wire.Transition]) -> None:
        if not transitions:
            return  # as nearly always
        for transition in transitions:
            self._say.note(transition, self.clock())
        if self.chorus is not None:
            transitions = self.chorus.ours(transitions)
        self._say_and_keep(transitions)

    def _say_and_keep(self, transitions: Sequence[wire.Transition]) -> None:
        self._keep([self.acting.with_acts(self._say(transition)) for transition in transitions])

    def _keep_ours(self, said: Sequence[wire.Transition]) -> None:
        """What people do is said where they do it; what time brings, by who speaks for the alert."""
        if self.chorus is not None:
            by_people = [one for one in said if one.change == "acknowledged"]
            said = by_people + self.chorus.ours([one for one in said if one.change != "acknowledged"])
        self._keep(said)

    def _keep(self, said: Sequence[wire.Transition]) -> None:
        """Have the journal store what was put into words, and tell it."""
        with self.defects.going_on("muting what is new"):
            said = self.muting.stamp(said, self.clock())
        if said:
            if self.chorus is not None:
                self.chorus.said(said)
            self.journal.announce(said)

    def tell(self, transitions: Sequence[wire.Transition]) -> None:
        """The journal has stored these, or could not: either way people are told now."""
        now = self._time.now()
        with self.defects.going_on("showing alerts"):
            for transition, alert in zip(transitions, self._show(transitions, now), strict=True):
                if alert is not None:
                    self.acting.ask(transition, alert, now)
        with self.defects.judging("telling people"):
            self._herald.offer(transitions)
        with self.defects.going_on("logging alerts"):
            self._logbook.note(transitions)
        self.on_told(transitions)

    def _show(self, transitions: Sequence[wire.Transition], now: float) -> list[wire.Alert | None]:
        """On the board and to browsers; gives the alerts as they are then."""
        self._publish_changes(now)
        alerts = [self.board.take(one, now) for one in transitions]
        self._audience.publish([wire.AlertChanged(alert=alert) for alert in alerts if alert is not None])
        return alerts

    # ------------------------------------------------------------ showing

    def snapshot(self) -> wire.Snapshot:
        """Everything, as of now."""
        return self._snapshot(self.picture.nodes)

    def first_frame(self, node: str | None = None) -> wire.Snapshot:
        """The snapshot for a browser: of each node what ticks tell, and the one that it shows in full."""
        return self._snapshot(lambda now: self.picture.nodes_at_a_glance(now, node))

    def _snapshot(self, nodes: Callable[[float], Iterable[wire.Node]]) -> wire.Snapshot:
        """Whoever watches already is told first what the snapshot holds and they do not."""
        now = self._time.now()
        self._publish_changes(now)
        return wire.Snapshot(
            at=now,
            server=self.server_info(),
            nodes=tuple(nodes(now)),
            runs=tuple(self.picture.runs()),
            alerts=self.board.all(),
            rules=self.rules(),
            silences=self.attention.silences(),
            channels=self._channels,
        )

    def rules(self) -> tuple[wire.Rule, ...]:
        return tuple(rule_view(rule) for rule in self.engine.rules.rules if rule.enabled)

    def open_alerts(self) -> list[wire.Alert]:
        """What is pending or firing, with its numbers as of now; what fires was stored first."""
        now = self._time.now()
        awaited = self._awaited()
        told = [alert for alert in self.board.open() if alert.id in awaited]
        return told + [self.board.view(one, now) for one in self.engine.episodes() if one.id not in awaited]

    def _view(self, alert_id: str) -> wire.Alert | None:
        """An alert as people were told of it last, or else, where nobody was yet, as it is now."""
        open_now = (self.board.view(one, self.clock()) for one in self.engine.episodes() if one.id == alert_id)
        return self.board.find(alert_id) or next(open_now, None)

    def _skew_of(self, node: str) -> float:
        session = self.roster.find(node)
        return session.skew_seconds if session else 0.0

    def server_info(self) -> wire.ServerInfo:
        return wire.ServerInfo(version=__version__, started_at=self.started_at, rules_error=self.rules_error)

    def _publish_changes(self, now: float) -> None:
        self._audience.publish(self.picture.changes(now))
        channels = tuple(self._herald.status())
        if channels != self._channels:
            self._channels = channels
            self._audience.publish([wire.ChannelsChanged(channels=channels)])
