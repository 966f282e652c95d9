"""A story of one channel's alerts, told without a clock: what is heard when, and what is said then."""

from collections.abc import Mapping, Sequence

import msgspec
from tests.server.notify_samples import START, transition

from oomwatch import wire
from oomwatch.letters import Account, Letter, Standing, TransitionKey
from oomwatch.notify.bucket import Draft
from oomwatch.notify.grouping import told_labels
from oomwatch.notify.notice import Notice
from oomwatch.notify.outbox import mail_of
from oomwatch.notify.pool import Pool
from oomwatch.notify.recovery import recover
from oomwatch.notify.route import Route, Router, Timing

MINUTE = 60.0
SILENCE = wire.Mute(kind="silence", by="s1")
MARIA = wire.Acknowledgement(by="maria", at=START)


class ChannelStory:
    """Times are seconds since START, and the pool's time is the wall's. Messages arrive at once unless held."""

    def __init__(
        self,
        *,
        send_resolved: bool = True,
        edits: bool = False,
        severity: wire.Severity = "info",
        route: Route | None = None,
        repeat_seconds: float = 0.0,
    ) -> None:
        self._timing = Timing(wait=0.25, interval=30.0, repeat=repeat_seconds)
        self.reroute(route)
        self._ways: Mapping[str, bool] = {"send_resolved": send_resolved, "edits": edits}
        self._severity: wire.Severity = severity
        self.pool = self._new_pool()
        self.told: dict[TransitionKey, str | None] = {}
        self.letters: list[Letter] = []
        self.heard: list[wire.Transition] = []

    def reroute(self, route: Route | None) -> None:
        """For what is heard from now on; a pool keeps where it put what it knows, until a restart."""
        self._router = Router(route, ["ops"], self._timing)

    def _new_pool(self) -> Pool:
        return Pool("ops", severity=self._severity, **self._ways)

    def hear(self, at: float, *transitions: wire.Transition) -> None:
        for one in transitions:
            self.heard.append(one)
            target = next(iter(self._router.targets(told_labels(one))), None)
            self.pool.add(one, target, START + at, max(0.0, START + at - one.at))

    def take(self, at: float) -> list[Draft]:
        """What is made now and stays on its way."""
        drafts = self.pool.take(START + at, START + at)
        for draft in drafts:
            self.letters.append(mail_of("ops", *draft).letter)
            self.told.update(dict.fromkeys(draft.covers, draft.notice.incident))
        return drafts

    def say(self, at: float) -> list[Notice]:
        """All that is due now, and it arrives."""
        said: list[Notice] = []
        while drafts := self.take(at):
            said += [draft.notice for draft in drafts]
            self.arrive(drafts)
        return said

    def arrive(self, drafts: Sequence[Draft]) -> None:
        for draft in drafts:
            self.pool.settle(draft.notice.incident)

    def said(self, at: float) -> list[str]:
        """In short: ["firing 0 1", "resolved 2"]."""
        return [in_short(notice) for notice in self.say(at)]

    def silent_until(self, at: float) -> bool:
        """There is nothing to say before; at that moment there is."""
        return self.pool.next_at() == START + at

    def restart(self, at: float, *, known_since: float = 0.0, waiting: Sequence[Letter] = ()) -> None:
        """Another server, from what was kept."""
        stories: dict[str, list[wire.Transition]] = {}
        for one in self.heard:
            stories.setdefault(one.id, []).append(one)
        routed = {alert: self._router.targets(told_labels(story[0])) for alert, story in stories.items()}
        last = {one.incident: one for one in self.letters if one.kind != "update"}
        account = Account(Standing("ops", START + known_since), self.told, waiting, last)
        self.pool = self._new_pool()
        targets = {alert: found[0] for alert, found in routed.items() if found}
        recover(self.pool, account, stories, targets, START + at, START + at)


def in_short(notice: Notice) -> str:
    return " ".join([notice.kind, *(one.labels.get("gpu", "-") for one in notice.news)])


def fires(gpu: int = 0, at: float = 0.0, **fields: object) -> wire.Transition:
    """GPU `gpu` of gpu-07 in run qwen7b, at START + at."""
    made = transition(gpu, at=START + at, started_at=START, run=str(fields.pop("run", "qwen7b")))
    return msgspec.structs.replace(made, **fields)


def ends(fired: wire.Transition, at: float, **fields: object) -> wire.Transition:
    over = msgspec.structs.replace(fired, state="resolved", at=START + at, change="state", reason="recovered")
    return msgspec.structs.replace(over, **fields)


def changes(fired: wire.Transition, change: wire.TransitionChange, at: float, **fields: object) -> wire.Transition:
    return msgspec.structs.replace(fired, change=change, at=START + at, **fields)
