"""Which alerts a receiver that is kept up to date is to hold: by its channel's severity and by the routes."""

from collections.abc import Callable, Collection

from oomwatch import wire
from oomwatch.core.mute.matcher import labels_of
from oomwatch.core.rule import severity_of
from oomwatch.notify.channel import ChannelSection
from oomwatch.notify.route import Router, Target


class Selection:
    """The alerts that are meant for one channel. `board`: all that are open, or ended lately."""

    def __init__(
        self,
        board: Callable[[], Collection[wire.Alert]],
        router: Router,
        config: ChannelSection,
        clock: Callable[[], float],
    ) -> None:
        self._board = board
        self._router = router
        self._config = config
        self._clock = clock
        self._targets: dict[str, Target | None] = {}  # by alert; its labels never change

    def alerts(self) -> list[wire.Alert]:
        board = self._board()
        known = self._targets
        targets = {one.id: known[one.id] if one.id in known else self._target(one) for one in board}
        self._targets = targets  # of those that are gone nothing is kept
        now = self._clock()
        return [alert for alert in board if is_meant(alert, targets[alert.id], self._config, now)]

    def _target(self, alert: wire.Alert) -> Target | None:
        labels = {**labels_of(alert), "severity": severity_of(alert)}
        found = self._router.targets(labels)
        return next((target for target in found if target.channel == self._config.name), None)


def is_meant(alert: wire.Alert, target: Target | None, config: ChannelSection, now: float) -> bool:
    """Whether a channel is to hold this alert. One that it escalates to, once nobody took care of it in time."""
    told = severity_of(alert)
    if target is None or wire.SEVERITIES.index(told) < wire.SEVERITIES.index(config.severity):
        return False
    if target.escalate_after is None:
        return True
    care, fired_at = alert.acknowledged, alert.fired_at
    until = now if alert.ended_at is None else alert.ended_at
    until = until if care is None else min(until, care.at)
    return fired_at is not None and until - fired_at >= target.escalate_after
