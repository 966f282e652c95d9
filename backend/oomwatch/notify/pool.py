"""What waits to be sent to one channel, and when each topic may speak. Pure: the time is an argument.

A topic's first message goes out `group_wait` after its first news, later ones at least `group_interval` apart. What
could not be sent stays and is bundled with what comes meanwhile, so an outage ends with a few messages and not a flood.
"""

from collections.abc import Iterable

from oomwatch import wire
from oomwatch.notify.grouping import Group, Topic, TransitionKey, group, key_of, topic_of

# A channel that is down for long must not fill the memory. 10,000 transitions with long texts are 46 MiB.
MAX_WAITING = 10_000


class _Bucket:
    __slots__ = ("attempts", "due_at", "open_at", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[TransitionKey, wire.Transition] = {}
        self.due_at = 0.0  # of the first that waits: its arrival plus group_wait
        self.open_at = 0.0  # not before: the last message plus group_interval
        self.attempts = 0

    @property
    def next_at(self) -> float:
        return max(self.due_at, self.open_at)


class Pool:
    def __init__(self, *, wait_seconds: float, interval_seconds: float, merge_resolved: bool = True) -> None:
        self._wait_seconds = wait_seconds
        self._interval_seconds = interval_seconds
        self._merge_resolved = merge_resolved
        self._buckets: dict[Topic, _Bucket] = {}
        self._length = 0
        self.dropped_total = 0

    def __len__(self) -> int:
        return self._length

    def add(self, transitions: Iterable[wire.Transition], now: float) -> None:
        """Take news; what already waits is not taken twice, and beyond MAX_WAITING the newest are dropped."""
        for transition in transitions:
            bucket = self._buckets.setdefault(topic_of(transition), _Bucket())
            if key_of(transition) in bucket.waiting:
                continue
            if self._length >= MAX_WAITING:
                self.dropped_total += 1
                continue
            if not bucket.waiting:
                bucket.due_at = now + self._wait_seconds
            bucket.waiting[key_of(transition)] = transition
            self._length += 1

    def next_at(self) -> float | None:
        """When there will be something to take; None while nothing waits."""
        return min((bucket.next_at for bucket in self._buckets.values() if bucket.waiting), default=None)

    def take(self, now: float) -> list[Group]:
        """The messages of one topic that is due, or nothing. They stay in the pool until `forget`.

        What failed before comes after what did not, so that one message a receiver chokes on holds up no other; then
        the gravest first.
        """
        self._buckets = {topic: one for topic, one in self._buckets.items() if one.waiting or one.open_at > now}
        due = [(topic, one) for topic, one in self._buckets.items() if one.waiting and one.next_at <= now]
        if not due:
            return []
        _, bucket = min(due, key=lambda item: (item[1].attempts, _rank(item[0]), item[1].next_at))
        bucket.open_at = now + self._interval_seconds
        return group(bucket.waiting.values(), merge_resolved=self._merge_resolved)

    def forget(self, sent: Group) -> None:
        """A message is done with: delivered, or failed for good."""
        bucket = self._buckets[sent.topic]
        bucket.attempts = 0
        for key in sent.covers:
            del bucket.waiting[key]
            self._length -= 1

    def retry(self, topic: Topic, now: float) -> None:
        """A message could not be sent: its topic is due again as soon as the channel is."""
        bucket = self._buckets[topic]
        bucket.attempts += 1
        bucket.open_at = now


def _rank(topic: Topic) -> int:
    return -wire.SEVERITIES.index(topic.severity)
