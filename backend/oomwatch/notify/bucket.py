"""A group of alerts in one channel, and when it may speak. Pure: the time is an argument.

From its first message until all that was told of is over it is one incident.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from oomwatch import wire
from oomwatch.core.rule import severity_of
from oomwatch.letters import TransitionKey
from oomwatch.notify.grouping import Group, in_order, incident_id, notice_id, repeat_id
from oomwatch.notify.member import Member, News, Ways
from oomwatch.notify.notice import NOTICE_KINDS, Notice, NoticeKind
from oomwatch.notify.route import Timing

# What changes the state of an alert for people, in the order in which it is said.
LOUD: tuple[NoticeKind, ...] = ("firing", "escalation", "resolved")
NEVER = float("inf")


class Draft(NamedTuple):
    """A message, and the transitions of which the channel knows once it has arrived."""

    notice: Notice
    covers: tuple[TransitionKey, ...]


class Bucket:
    def __init__(self, group: Group, timing: Timing, ways: Ways) -> None:
        self.group = group
        self.timing = timing
        self.ways = ways
        self.members: dict[str, Member] = {}
        self.incident: str | None = None  # None: nothing was told yet
        self.open_at = -NEVER  # no message before: the last one plus the interval
        self.told_at: float | None = None  # of the last message that was no mere update
        self.told_wall = 0.0  # the same, in Unix seconds
        self.next_at = NEVER  # when there is something to say
        self.has_news = False  # something has changed; what is told again, or only after a time, is no news
        self.rank = 0  # of the gravest alert in it

    # ------------------------------------------------------------ when

    def refresh(self) -> None:
        """Something has changed: work out anew when there is something to say, and how grave it is."""
        news = {alert: found for alert, one in self.members.items() if (found := one.news(self.ways)) is not None}
        loud = min((self._ripe_at(alert) for alert, kind in news.items() if kind != "update"), default=NEVER)
        edits = min((self._ripe_at(alert) for alert, kind in news.items() if kind == "update"), default=NEVER)
        self.next_at = min(max(loud, self.open_at), edits, self._repeat_at())
        self.has_news = any(kind != "escalation" for kind in news.values())
        latest = [one.latest for one in self.members.values() if one.latest is not None]
        self.rank = max((wire.SEVERITIES.index(severity_of(one)) for one in latest), default=0)

    def _ripe_at(self, alert: str) -> float:
        return self.members[alert].ripe_at(self.ways, self.timing.wait)

    def _repeat_at(self) -> float:
        if (
            self.told_at is None
            or self.timing.repeat <= 0
            or not any(one.is_repeated() for one in self.members.values())
        ):
            return NEVER
        return self.told_at + self.timing.repeat

    @property
    def is_over(self) -> bool:
        """Nothing that was told of fires, and there is nothing to say of it."""
        told = [one for one in self.members.values() if one.told is not None]
        return not any(one.news(self.ways) or (one.latest and one.latest.state == "firing") for one in told)

    # ------------------------------------------------------------ what

    def compose(self, channel: str, now: float, wall: float) -> list[Draft]:
        """What is to be said now, as few messages as there are kinds; all of it counts as told from then on."""
        due = self._due(now)
        spoken = [kind for kind in LOUD if due[kind]] or [self._quiet_kind(now)]
        drafts = [self._draft(channel, kind, due[kind], wall) for kind in spoken if due[kind]]
        if spoken[0] in LOUD:
            # An edit goes along with what is said anyhow, since everything is said with it.
            along = tuple(key for one in due["update"] for key in one.told_now())
            drafts[0] = drafts[0]._replace(covers=drafts[0].covers + along)
        self._note(drafts, now, wall)
        self.refresh()
        return drafts

    def _due(self, now: float) -> dict[NoticeKind, list[Member]]:
        due: dict[NoticeKind, list[Member]] = {kind: [] for kind in NOTICE_KINDS}
        for member in self.members.values():
            news = member.news(self.ways)
            if news is not None and (news == "update" or now >= self.open_at) and self._is_ripe(member, news, now):
                due[news].append(member)
        due["repeat"] = [one for one in self.members.values() if one.is_repeated()] if now >= self._repeat_at() else []
        return due

    def _is_ripe(self, member: Member, news: News, now: float) -> bool:
        """An escalation comes early rather than alone after the others: it would have to wait for the interval."""
        return news != "escalation" or member.ripe_at(self.ways, 0.0) <= now + self.timing.interval

    def _quiet_kind(self, now: float) -> NoticeKind:
        return "repeat" if now >= self._repeat_at() else "update"

    def _draft(self, channel: str, kind: NoticeKind, members: Sequence[Member], wall: float) -> Draft:
        state: Literal["firing", "resolved"] = "resolved" if kind == "resolved" else "firing"
        news = [one for member in members for one in _news_of(member, kind, state)]
        if kind == "update" and all(one.state == "resolved" for one in news):
            state = "resolved"
        covers = tuple(key for member in members for key in (member.told_now() if kind != "repeat" else ()))
        if self.incident is None:
            self.incident = incident_id(self.group, news)
        known = (
            repeat_id(channel, kind, self.incident, self.told_wall) if not covers else notice_id(channel, kind, covers)
        )
        notice = Notice(
            id=known,
            kind=kind,
            incident=self.incident,
            made_at=wall,
            labels=dict(self.group.labels),
            severity=max((severity_of(one) for one in news), key=wire.SEVERITIES.index),
            state=state,
            news=in_order(news),
            everything=in_order(self._latest()),
            simulated=self.group.simulated,
        )
        return Draft(notice, covers)

    def _note(self, drafts: Sequence[Draft], now: float, wall: float) -> None:
        if any(draft.notice.kind != "update" for draft in drafts):
            self.told_at, self.told_wall = now, wall
            self.open_at = now + self.timing.interval

    def _latest(self) -> Iterator[wire.Transition]:
        """Of every alert that the channel knows of."""
        return (one.latest for one in self.members.values() if one.told is not None and one.latest is not None)

    # ------------------------------------------------------------ its end

    def drop_outlived(self) -> list[str]:
        """Of what is told and over, keep each subject's last, for a subject that flaps beside one that stays would fill
        the memory. Gives the ids of what is dropped."""
        last: dict[object, tuple[float, str]] = {}
        for alert, one in self.members.items():
            if one.latest is not None:
                subject = _subject(one.latest)
                last[subject] = max(last.get(subject, (-NEVER, "")), (one.latest.started_at, alert))
        outlived = [
            alert
            for alert, one in self.members.items()
            if one.is_settled(self.ways) and one.latest is not None and last[_subject(one.latest)][1] != alert
        ]
        for alert in outlived:
            del self.members[alert]
        return outlived

    def part(self) -> "Bucket":
        """The incident is over: what was told of leaves as a bucket of its own, for verdicts that come later."""
        past = Bucket(self.group, self.timing, self.ways)
        past.incident, self.incident = self.incident, None
        past.members = {alert: one for alert, one in self.members.items() if one.told is not None}
        self.members = {alert: one for alert, one in self.members.items() if one.told is None}
        self.told_at = None
        past.refresh()
        self.refresh()
        return past


def _subject(one: wire.Transition) -> object:
    return one.alert, severity_of(one), frozenset(one.labels.items())


def _news_of(member: Member, kind: NoticeKind, state: Literal["firing", "resolved"]) -> Iterable[wire.Transition]:
    """Of an update every change, of everything else the alert as it is."""
    if kind == "update":
        return tuple(member.untold.values())
    one = member.as_told(state)
    return () if one is None else (one,)
