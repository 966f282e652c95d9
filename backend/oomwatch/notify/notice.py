"""One message to one channel: what is to be said, before any channel has put it into its own form. Pure."""

from typing import Literal, TypeAlias, get_args

import msgspec

from oomwatch import wire

# Why it is sent: alerts fire; they are over; they fire still; they fire and nobody took care of them; something about
# alerts that were told of has changed (for channels that can change what they said); another channel has failed.
NoticeKind: TypeAlias = Literal["firing", "resolved", "repeat", "escalation", "update", "channel"]
NOTICE_KINDS: tuple[NoticeKind, ...] = get_args(NoticeKind)


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """`id` is the same for every attempt to say the same, also after a restart: a receiver drops what it knows.

    `incident` is the same for all that is said of one group of alerts from the first that fires until all are over: a
    channel that can change a message, or answer in its thread, keeps one for each.
    """

    id: str
    kind: NoticeKind
    incident: str
    made_at: float
    labels: dict[str, str]  # what its alerts have in common and are grouped by: alert, severity, run, node, ...
    severity: wire.Severity  # the gravest, as people were told it
    state: Literal["firing", "resolved"]  # of the news
    news: tuple[wire.Transition, ...]  # what this message is about, by node and GPU
    everything: tuple[wire.Transition, ...] = ()  # the latest of every alert of the incident, the news too
    simulated: bool = False
    receipt: str | None = None  # what the message of this incident gave that can be changed
    channel: wire.ChannelState | None = None  # of kind "channel": the one that has failed, or works again

    @property
    def alert(self) -> str | None:
        """The rule, where there is but one."""
        names = {one.alert for one in self.news}
        return self.labels.get("alert") or (names.pop() if len(names) == 1 else None)

    @property
    def run(self) -> str | None:
        """The run that all of it is about."""
        return self.labels.get("run")
