"""The server's database as the service sees it.

One worker thread writes. Reads may be made from other threads at the same time (SQLite in WAL mode lets readers and the
writer alone). Every method may raise StoreError; what failed has stored nothing and may be asked again.

What is durable: when append() or record() has returned, the data outlives the death of the server at any moment. A
power cut (or a crash of the kernel) may take the last commits of a SQLite file with it and leaves it whole; PostgreSQL
keeps them.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from sqlalchemy import Connection

from oomwatch import wire
from oomwatch.access.audit import Deed
from oomwatch.access.token import Token
from oomwatch.core.past import Past
from oomwatch.core.subject import Channel
from oomwatch.letters import Account, Letter, Standing
from oomwatch.scorecard import RuleKey, Scorecard, failures_of
from oomwatch.scorecard import scores as rule_scores
from oomwatch.store import (
    agents,
    alerts,
    chunks,
    compaction,
    events,
    history,
    members,
    notices,
    pasts,
    recall,
    reports,
    scores,
    silences,
    sizes,
    tables,
    tokens,
)
from oomwatch.store.agents import KnownNode, KnownRun
from oomwatch.store.alerts import FiredAlert
from oomwatch.store.batch import Batch, Entry
from oomwatch.store.compaction import Keep
from oomwatch.store.database import Database, hurried_database, open_database
from oomwatch.store.errors import StoreError
from oomwatch.store.history import Series
from oomwatch.store.members import Member
from oomwatch.store.people import People

__all__ = ["Batch", "Entry", "Keep", "KnownNode", "KnownRun", "Member", "Series", "Store", "StoreError"]

# A merge or a deletion shares the worker with the alerts and so is done in small helpings. One of merging ends with the
# subject during which this time is over: an hour of a subject is some 20 ms of work.
COMPACT_SECONDS = 0.02
PRUNE_ROWS = 5000
# Progress outlives the readings where those are kept for less: an agent keeps unsent messages for 10 minutes.
LEAST_KEEP_SECONDS = 3600.0
FUTURE_SECONDS = 86_400.0  # what is dated further ahead was stored while a clock was wrong, and would never grow old
HOUR_SECONDS, DAY_SECONDS = 3600.0, 86_400.0
PASTS_KEEP_SECONDS = 90 * DAY_SECONDS  # the last good run may be long ago, and takes some KiB
AUDIT_KEEP_SECONDS = 365 * DAY_SECONDS
END_OF_TIME = 1e12  # of wire.UnixSeconds


class Store:
    """See the module. `Store.open` migrates; `close` ends every connection."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._subject_ids: chunks.SubjectIds = {}
        self.people = People(database)

    @classmethod
    def open(cls, address: str) -> "Store":
        """Open, create or migrate the database at a path, such as /var/lib/oomwatch/oomwatch.db, or a SQLAlchemy URL.

        Raises StoreError where it cannot be written, or where a newer oomwatch wrote it.
        """
        return cls(open_database(address))

    @classmethod
    def hurried(cls, address: str) -> "Store":
        """A PostgreSQL that was opened, on connections of its own, for what is to be answered within seconds.

        Connects to nothing yet. Raises StoreError for another than PostgreSQL.
        """
        return cls(hurried_database(address))

    def close(self) -> None:
        """Close every connection."""
        self._database.close()

    def lost(self) -> str | None:
        """A sentence where the database's file was deleted or replaced; from then on everything else raises it."""
        return self._database.lost()

    # ------------------------------------------------------------ alerts

    def append(self, transitions: Sequence[wire.Transition]) -> None:
        """Store transitions, in their order. One with a known (id, state, at, change) is passed over: retry at will."""
        self._database.write(alerts.append, transitions)

    def transitions_since(self, seq: int, *, limit: int = 1000) -> list[tuple[int, wire.Transition]]:
        """(seq, transition) of those that any server stored after the one of that seq, in their order.

        Who asks again from the last seq that it was given misses none. Where the seq of one's own transitions is
        wanted too: they are among them.
        """
        with self._database.reading() as connection:
            return alerts.since(connection, seq, limit)

    def last_transition(self) -> int:
        """The seq of the transition that was stored last; 0 where there is none."""
        with self._database.reading() as connection:
            return alerts.last_seq(connection)

    def open_alerts(self) -> list[wire.Transition]:
        """The latest transition of each alert that fires."""
        with self._database.reading() as connection:
            return alerts.open_alerts(connection)

    def unfinished(self, since: float) -> list[wire.Transition]:
        """Every transition of the alerts that fire, and of those that ended since then and have no outcome yet."""
        with self._database.reading() as connection:
            return alerts.unfinished(connection, since)

    def alerts(
        self,
        *,
        state: str | None = None,
        node: str | None = None,
        run: str | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int = 1000,
        alert: str | None = None,
    ) -> list[wire.Alert]:
        """Alerts, the one that started last first, without those that were over by `since` or began after `until`."""
        labels = {"state": state, "node": node, "run": run, "alert": alert}
        with self._database.reading() as connection:
            return alerts.alerts(connection, labels, since=since, until=until, limit=limit)

    def alert(self, alert_id: str) -> wire.Alert | None:
        """One alert, or None."""
        with self._database.reading() as connection:
            return alerts.alert_by_id(connection, alert_id)

    def transitions_of(self, alert_id: str) -> list[wire.Transition]:
        """Every transition of one alert, oldest first."""
        with self._database.reading() as connection:
            return alerts.transitions_of(connection, alert_id)

    def fired(self, since: float) -> list[FiredAlert]:
        """What began to fire from `since` on; at most alerts.FIRED_MAX, the latest."""
        with self._database.reading() as connection:
            return alerts.fired(connection, since)

    def silences(self, ending_after: float) -> list[wire.Silence]:
        """Those that end later, the one that ends first at the beginning."""
        with self._database.reading() as connection:
            return silences.ending_after(connection, ending_after)

    def keep_silences(self, changed: Sequence[wire.Silence]) -> None:
        """Keep these, in place of what was kept of the same ones."""
        self._database.write(silences.keep, changed)

    # ------------------------------------------------------------ reports of what ran out of memory

    def keep_report(self, incident: str, entry: bytes, report: bytes, at_most: int) -> None:
        """Keep a report and its line of the list, and let the oldest go."""
        self._database.write(reports.keep, incident, entry, report, at_most)

    def reports(self) -> list[tuple[str, bytes]]:
        """(incident, line of the list) of each, the newest first."""
        with self._database.reading() as connection:
            return reports.entries(connection)

    def report(self, incident: str) -> bytes | None:
        """One report, or None."""
        with self._database.reading() as connection:
            return reports.report_of(connection, incident)

    # ------------------------------------------------------------ access

    def tokens(self) -> list[Token]:
        """Every token, by name."""
        with self._database.reading() as connection:
            return tokens.known(connection)

    def keep_token(self, token: Token) -> None:
        """Keep a new token."""
        self._database.write(tokens.keep, token)

    def change_token(self, token: Token) -> None:
        """Keep a token in place of the one with its id."""
        self._database.write(tokens.change, token)

    def note_deeds(self, deeds: Sequence[Deed]) -> None:
        """Add to the audit log."""
        self._database.write(tokens.note, deeds)

    def deeds(self, since: float, limit: int) -> list[Deed]:
        """What people had the server do since then, the latest first."""
        with self._database.reading() as connection:
            return tokens.deeds(connection, since, limit)

    # ------------------------------------------------------------ messages to channels

    def keep_letters(self, letters: Sequence[Letter], standings: Sequence[Standing] = ()) -> None:
        """Write messages, or what became of them, in one transaction; and how channels fare. Again at will."""
        self._database.write(notices.keep, letters, standings)

    def stories(self, since: float, unjudged_since: float) -> list[wire.Transition]:
        """Every transition of the alerts that a notifier has to know of when it starts, in their order.

        Those that fire, that changed since `since`, or that ended after `unjudged_since` and have no verdict yet.
        """
        with self._database.reading() as connection:
            return alerts.stories(connection, notices.stories(connection, since, unjudged_since))

    def account(self, channel: str, alert_ids: Sequence[str], now: float) -> Account:
        """What a channel was told of these alerts. A channel that nobody knew is known from now on."""
        return self._database.write(notices.account, channel, alert_ids, now)

    def deliveries_of(self, alert_id: str) -> list[wire.Delivery]:
        """Every message that told of an alert, or is to, oldest first."""
        with self._database.reading() as connection:
            return notices.deliveries_of(connection, alert_id)

    # ------------------------------------------------------------ agents

    def record(self, batch: Batch) -> None:
        """Store a batch in one transaction. Messages that are already stored are passed over."""
        self._database.write(_record, batch, self._subject_ids)

    def progress(self, node: str, session: str) -> int:
        """The last stored sequence number of a session; 0 for one that was never stored."""
        with self._database.reading() as connection:
            return agents.progress_of(connection, node, session)

    def nodes(self) -> list[KnownNode]:
        """Every node that is not gone for good, by name."""
        with self._database.reading() as connection:
            return agents.known_nodes(connection)

    def last_seen(self, names: Collection[str]) -> dict[str, float]:
        """When each of these nodes was heard last, by whichever server; Unix seconds of that one's clock."""
        with self._database.reading() as connection:
            return agents.last_seen(connection, names)

    def runs(self) -> list[KnownRun]:
        """Every run, the one that was seen last first."""
        with self._database.reading() as connection:
            return agents.known_runs(connection)

    def pasts(self) -> list[Past]:
        """What is kept of every run's memory, the one that was kept last at the end."""
        with self._database.reading() as connection:
            return pasts.known(connection)

    def keep_pasts(self, changed: Sequence[Past], now: float) -> None:
        """Keep these instead of what was kept of the same runs."""
        self._database.write(pasts.keep, changed, now)

    def retire_node(self, node: str, now: float) -> None:
        """A node that is gone for good, unless it is heard later. Its history stays for as long as all history."""
        self._database.write(agents.retire, node, now)

    def retired_nodes(self) -> list[str]:
        """Those, by name, for as long as their last message is kept."""
        with self._database.reading() as connection:
            return agents.retired(connection)

    # ------------------------------------------------------------ servers that share the database

    def beat(self, replica: str, address: str, started_at: float) -> None:
        """This server is alive. To be called every few seconds."""
        self._database.write(members.beat, replica, address, started_at)

    def members(self) -> list[Member]:
        """Every server that was alive of late, by name."""
        with self._database.reading() as connection:
            return members.known(connection)

    def leave(self, replica: str) -> None:
        """This server stops."""
        self._database.write(members.leave, replica)

    # ------------------------------------------------------------ history

    def recent_samples(self, since: float, until: float = END_OF_TIME) -> Iterator[tuple[str, wire.Sample]]:
        """(node, sample) from `since` to `until`, one node after the other, each in the order of time.

        seq is 0, processes are None, and what probes said is the sum over each GPU
        (core.allocator). Only one node's samples are in memory at a time.
        """
        with self._database.reading() as connection:
            yield from recall.recent_samples(connection, since, until)

    def samples_in_order(self, start: float, end: float, nodes: Collection[str]) -> Iterator[tuple[str, wire.Sample]]:
        """(node, sample) of these nodes from `start` to `end` in the order of time, as in recent_samples otherwise.

        What a node's rollout engines said is one engine's. One hour is in memory at a time, 40 bytes a reading.
        """
        begin = start
        while begin <= end:
            until = min(end, (begin // HOUR_SECONDS + 1) * HOUR_SECONDS - 0.001)
            with self._database.reading() as connection:
                hour = recall.in_order(connection, begin, until, nodes)
            yield from hour
            begin = until + 0.001

    def recent_events(
        self, since: float, until: float = END_OF_TIME, *, kinds: Collection[str] | None = None
    ) -> Iterator[tuple[str, wire.Event]]:
        """(node, event) from `since` to `until`, in the order of time; seq is 0. `kinds`: only these."""
        with self._database.reading() as connection:
            return iter(events.recent(connection, since, until, kinds))

    def series(self, name: str, labels: Mapping[str, str], start: float, end: float, step: float) -> Series:
        """A figure of history.SERIES over time. Raises ValueError with a sentence for the person who asked."""
        with self._database.reading() as connection:
            return history.series(connection, name, labels, start, end, step)

    def series_of_gpus(
        self, name: str, places: Sequence[tuple[str, str]], start: float, end: float, step: float
    ) -> list[Series]:
        """A figure of several GPUs, by node and label, in buckets of one width; in their order. Raises ValueError."""
        with self._database.reading() as connection:
            return history.of_gpus(connection, name, places, start, end, step)

    def gpus(self, *, node: str | None = None, run: str | None = None) -> list[tuple[str, str]]:
        """(node, label) of every GPU of which there is history: of a node, of the nodes of a run, or of all."""
        with self._database.reading() as connection:
            return chunks.gpus(connection, node, run)

    def places(self) -> list[tuple[str, str]]:
        """(node, label) of all of which readings were ever told; the label of a host is empty."""
        with self._database.reading() as connection:
            return tables.places(connection)

    def hour(self, places: Sequence[tuple[str, str]], start_ms: int, end_ms: int, width_ms: int) -> tables.Hour:
        """All columns of an hour or a part of it, of these places: for who takes everything away."""
        with self._database.reading() as connection:
            return tables.hour(connection, places, start_ms, end_ms, width_ms)

    def transitions_between(self, start: float, end: float) -> list[wire.Transition]:
        """Every transition of a stretch of time, in its order."""
        with self._database.reading() as connection:
            return list(tables.transitions_between(connection, start, end))

    def steps(self, run: str, limit: int) -> list[wire.StepPoint]:
        """The last steps of a run, oldest first, each once."""
        with self._database.reading() as connection:
            return events.steps(connection, run, limit)

    def scorecard(
        self, start: float, end: float, run: str | None, predicts: Mapping[RuleKey, Channel | None]
    ) -> Scorecard:
        """How good the warnings from `start` to `end` were; `predicts` says what the rules in force foretell."""
        with self._database.reading() as connection:
            failures = failures_of(scores.failures(connection, start, end, run))
            gpu_days = scores.watched_gpu_seconds(connection, start, end, run) / DAY_SECONDS
            fired = scores.fired(connection, start, end, run)
        return Scorecard(
            start_at=start,
            end_at=end,
            run=run,
            gpu_days=gpu_days,
            failures=dict(Counter(one.channel for one in failures)),
            rules=rule_scores(fired, failures, predicts, gpu_days),
        )

    # ------------------------------------------------------------ upkeep

    def compact(self, now: float, *, for_seconds: float = COMPACT_SECONDS) -> bool:
        """Merge some chunks of hours that are over. True: there may be more to do. To be called after each record().

        It ends with the subject during which so much time is over: one at least is done.
        """
        return self._database.write(compaction.compact, now, for_seconds)

    def sizes(self) -> sizes.Sizes:
        """How large the database is, and its history of each fineness."""
        with self._database.reading() as connection:
            return sizes.sizes(connection)

    def checkpoint(self) -> None:
        """Sync SQLite's log and shorten it. To be called every few seconds, and not in the thread that writes."""
        self._database.checkpoint()

    def prune(
        self, now: float, keep_seconds: float, *, readings: Keep | None = None, at_most_rows: int = PRUNE_ROWS
    ) -> bool:
        """Delete some of what is older than `keep_seconds`, or from the future; open alerts stay. True: there is more.

        Readings are kept for as long as `readings` says. A SQLite file does not shrink: the room is used again.
        """
        keep = Keep.all_for(keep_seconds) if readings is None else readings
        return self._database.write(_prune, now, keep_seconds, keep, at_most_rows)


def _record(connection: Connection, batch: Batch, subject_ids: chunks.SubjectIds) -> None:
    entries = agents.unseen(connection, batch.entries)
    agents.write(connection, entries)
    said = [(entry.node, entry.message) for entry in entries]
    samples = ((node, it) for node, it in said if isinstance(it, wire.Sample))
    chunks.write(connection, samples, subject_ids)
    events.write(connection, ((node, it) for node, it in said if isinstance(it, wire.Event)))


def _prune(connection: Connection, now: float, keep_seconds: float, readings: Keep, at_most_rows: int) -> bool:
    cutoff, horizon = now - keep_seconds, now + FUTURE_SECONDS
    agents.prune(connection, now - max(keep_seconds, LEAST_KEEP_SECONDS), now, horizon)
    silences.prune(connection, cutoff)
    tokens.prune(connection, now - max(keep_seconds, AUDIT_KEEP_SECONDS))
    pasts.prune(connection, now - max(keep_seconds, PASTS_KEEP_SECONDS), now, horizon)
    counts = [prune(connection, cutoff, horizon, at_most_rows) for prune in (events.prune, alerts.prune, notices.prune)]
    counts.append(compaction.prune(connection, now, readings, horizon, at_most_rows))
    return max(counts) >= at_most_rows
