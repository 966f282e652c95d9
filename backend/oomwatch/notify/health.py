"""How a channel fares, from what its attempts gave; and when others have to hear of it. Pure."""

import msgspec

from oomwatch import wire
from oomwatch.letters import Standing
from oomwatch.notify.grouping import digest
from oomwatch.notify.notice import Notice
from oomwatch.notify.outcome import Delivered, Failed, Outcome

# A receiver may be restarted or throttle us for some minutes; who is told nothing for longer should know.
FAILING_SECONDS = 600.0


def totals_of(before: wire.ChannelState, now: wire.ChannelState) -> wire.ChannelState:
    """A channel as it fares now, counted on from before."""
    return msgspec.structs.replace(
        now,
        delivered_total=before.delivered_total + now.delivered_total,
        failed_total=before.failed_total + now.failed_total,
        retries_total=before.retries_total + now.retries_total,
        dropped_total=before.dropped_total + now.dropped_total,
    )


class Health:
    """`standing.health` is what others were last told of this channel, `state.health` what is so now."""

    def __init__(self, state: wire.ChannelState, standing: Standing) -> None:
        """`state`: with the totals so far."""
        self.standing = standing
        self.state = msgspec.structs.replace(
            state,
            health=standing.health,
            last_error=standing.error or state.last_error,
            last_error_at=standing.error_at or state.last_error_at,
        )
        self._failing_since: float | None = None

    def note(self, outcome: Outcome, now: float, wall: float) -> bool:
        """What an attempt gave. True: `standing` has changed, and others are to be told."""
        if isinstance(outcome, Delivered):
            return self._good(wall)
        is_final = isinstance(outcome, Failed)
        if self._failing_since is None:
            self._failing_since = now
        self.state = msgspec.structs.replace(
            self.state,
            health="failed" if is_final or self.state.health == "failed" else "failing",
            failed_total=self.state.failed_total + is_final,
            retries_total=self.state.retries_total + (not is_final),
            last_error_at=wall,
            last_error=outcome.reason[: wire.TEXT_CHARS_MAX],
        )
        is_told = self.standing.health != "ok"
        if is_told or not (is_final or now - self._failing_since >= FAILING_SECONDS):
            return False
        health, error, error_at = self.state.health, self.state.last_error, self.state.last_error_at
        self.standing = self.standing._replace(health=health, error=error, error_at=error_at)
        return True

    def _good(self, wall: float) -> bool:
        self._failing_since = None
        self.state = msgspec.structs.replace(
            self.state, health="ok", delivered_total=self.state.delivered_total + 1, last_success_at=wall
        )
        if self.standing.health == "ok":
            return False
        self.standing = self.standing._replace(health="ok")
        return True

    def notice(self, to: str, wall: float) -> Notice:
        """What another channel is to say of this one. That it fails and that it works again are one incident."""
        incident = f"chn_{digest((self.state.name, self.standing.error_at))}"
        return Notice(
            id=f"msg_{digest((to, incident, self.standing.health))}",
            kind="channel",
            incident=incident,
            made_at=wall,
            labels={"channel": self.state.name},
            severity="critical",
            state="resolved" if self.standing.health == "ok" else "firing",
            news=(),
            channel=self.state,
        )
