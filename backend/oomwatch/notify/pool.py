"""All that one channel is to be told: its alerts in their groups, and which group speaks next. Pure.

A group of which a message is on its way says nothing else until that has arrived, so that what is said of it comes in
order; its news gather here. Others go on.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from heapq import nsmallest

from oomwatch import wire
from oomwatch.core.rule import severity_of
from oomwatch.notify.bucket import NEVER, Bucket, Draft
from oomwatch.notify.grouping import Group, group_of, told_labels
from oomwatch.notify.member import Member, Ways
from oomwatch.notify.route import Target

# A channel must not fill the memory. 30,000 alerts with long texts are 140 MiB, most of it shared by all channels.
ALERTS_MAX = 30_000
PAST_KEPT = 200  # incidents that are over and may yet get a verdict, for channels that can edit what they said


class Pool:
    def __init__(self, channel: str, *, severity: wire.Severity, send_resolved: bool, edits: bool) -> None:
        self._channel = channel
        self._least = wire.SEVERITIES.index(severity)
        self._ways = Ways(send_resolved=send_resolved, edits=edits)
        self._buckets: dict[tuple[Group, float | None], Bucket] = {}
        self._homes: dict[str, Bucket] = {}  # by alert
        self._past: OrderedDict[str, Bucket] = OrderedDict()  # by incident
        self._busy: set[str] = set()  # incidents with a message on its way
        self._touched: dict[Bucket, None] = {}  # to be looked at before anything is asked
        self.dropped_total = 0

    # ------------------------------------------------------------ what comes in

    def add(self, new: wire.Transition, target: Target | None, now: float, age_seconds: float) -> None:
        """A transition that came about so long ago. A new alert for which there is no room is dropped and counted.

        `target` is None where alerts like this one are not meant for the channel; of those it was told of it hears on.
        """
        bucket = self._homes.get(new.id)
        if bucket is None and target is not None and self._wants(new):
            bucket = self._room(new, target)
        if bucket is None:
            return
        member = bucket.members.setdefault(new.id, Member())
        member.take(new, now, bucket.ways, age_seconds)
        if member.is_nobodys(bucket.ways):
            del bucket.members[new.id], self._homes[new.id]
        self._touched[bucket] = None

    def recall(self, old: wire.Transition, target: Target, at: float, incident: str | None) -> None:
        """A transition of which the channel was told in an earlier life, by a message of this incident."""
        bucket = self._homes.get(old.id) or self._room(old, target)
        if bucket is not None:
            bucket.members.setdefault(old.id, Member()).recall(old, at)
            bucket.incident = incident or bucket.incident
            self._touched[bucket] = None

    def _room(self, transition: wire.Transition, target: Target) -> Bucket | None:
        """Where a new alert belongs; None where it finds no room."""
        while len(self._homes) >= ALERTS_MAX and self._past:
            self._forget(self._past.popitem(last=False)[1])
        if len(self._homes) >= ALERTS_MAX:
            self.dropped_total += transition.state == "firing"
            return None
        labels = told_labels(transition)
        group = group_of(labels, target.path, target.group_by, simulated=transition.simulated)
        key = (group, target.escalate_after)
        if key not in self._buckets:
            ways = self._ways._replace(after_seconds=target.escalate_after)
            self._buckets[key] = Bucket(group, target.timing, ways)
        self._homes[transition.id] = self._buckets[key]
        return self._buckets[key]

    def _wants(self, transition: wire.Transition) -> bool:
        return transition.state != "pending" and wire.SEVERITIES.index(severity_of(transition)) >= self._least

    # ------------------------------------------------------------ what goes out

    def next_at(self) -> float | None:
        """When there will be something to take; None while nothing waits for its time."""
        self._look()
        times = [bucket.next_at for bucket in self._free()]
        earliest = min(times, default=NEVER)
        return None if earliest == NEVER else earliest

    def rank_at(self, now: float) -> int | None:
        """How grave what `take` would give is; None where that is nothing."""
        self._look()
        return max((bucket.rank for bucket in self._free() if bucket.next_at <= now), default=None)

    def due(self, now: float) -> int:
        """How many groups `take` could give the messages of."""
        self._look()
        return sum(bucket.next_at <= now for bucket in self._free())

    def take(self, now: float, wall: float, groups: int = 1) -> list[Draft]:
        """The messages of groups that are due, the gravest and then the longest due first. They count as on their way.

        At most so many groups have their say.
        """
        self._look()
        self._buckets = {key: one for key, one in self._buckets.items() if one.members or one.open_at > now}
        due = [bucket for bucket in self._free() if bucket.next_at <= now]
        first = nsmallest(groups, due, key=lambda one: (-one.rank, one.next_at))
        return [draft for bucket in first for draft in self._drafts(bucket, now, wall)]

    def _drafts(self, bucket: Bucket, now: float, wall: float) -> list[Draft]:
        for alert in bucket.drop_outlived():
            self._homes.pop(alert, None)
        drafts = bucket.compose(self._channel, now, wall)
        self._busy.update(draft.notice.incident for draft in drafts)
        return drafts

    def _look(self) -> None:
        """At the groups of which something was heard: once, however much it was."""
        touched, self._touched = list(self._touched), {}
        for bucket in touched:
            bucket.refresh()
            self._close_if_over(bucket)

    def hold(self, incident: str) -> None:
        """A message of it is on its way since an earlier life."""
        self._busy.add(incident)

    def settle(self, incident: str) -> None:
        """Nothing of it is on its way any more."""
        self._busy.discard(incident)
        self._touched.update(dict.fromkeys(one for one in self._buckets.values() if one.incident == incident))

    def waiting(self) -> int:
        """Groups with news."""
        self._look()
        return sum(bucket.has_news for bucket in self._all())

    # ------------------------------------------------------------ incidents that are over

    def resume(
        self, incident: str, told: Sequence[wire.Transition], now: float, told_wall: float, age_seconds: float
    ) -> None:
        """What the last message of an incident said, so long ago: its groups go on with their pauses."""
        for bucket in [one for one in self._buckets.values() if one.incident == incident]:
            bucket.told_at, bucket.told_wall = now - age_seconds, told_wall
            bucket.open_at = bucket.told_at + bucket.timing.interval
            for one in told:
                if one.state == "resolved" and one.id not in self._homes:
                    bucket.members[one.id] = member = Member()
                    member.recall(one, now)
                    self._homes[one.id] = bucket
            self._touched[bucket] = None

    def _close_if_over(self, bucket: Bucket) -> None:
        if bucket.incident is None or bucket.incident in self._busy or not bucket.is_over:
            return
        earlier = self._past.get(bucket.incident)  # of another group, where routes have changed since it began
        if bucket is earlier:
            return
        past = bucket.part()
        if self._ways.edits and past.incident is not None:
            past.members |= earlier.members if earlier is not None else {}
            self._homes.update(dict.fromkeys(past.members, past))
            self._past[past.incident] = past
        else:
            self._forget(past)
        while len(self._past) > PAST_KEPT:
            self._forget(self._past.popitem(last=False)[1])

    def _forget(self, past: Bucket) -> None:
        for alert in past.members:
            self._homes.pop(alert, None)

    def _free(self) -> Iterator[Bucket]:
        return (bucket for bucket in self._all() if bucket.incident is None or bucket.incident not in self._busy)

    def _all(self) -> Iterator[Bucket]:
        yield from self._buckets.values()
        yield from self._past.values()
