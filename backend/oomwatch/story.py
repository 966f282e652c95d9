"""PURE: what the transitions of an alert add up to. The store, the page and the messages all tell it by this."""

from collections.abc import Iterable

import msgspec

from oomwatch import wire

UNJUDGED_SECONDS = 14_400.0  # what became of a warning is known after twenty steps, or never
# What later transitions of an alert do not say again.
LASTING = ("outcome", "causes", "remedies", "acts", "acknowledged")
# A new state is told with everything that people see of the alert; any other change is an addition.
STATES = ("state", "severity")


def alert_of(story: Iterable[wire.Transition]) -> wire.Alert | None:
    """The alert that these transitions tell of, oldest first; None where there are none."""
    alert: wire.Alert | None = None
    for transition in story:
        alert = with_transition(alert, transition)
    return alert


def with_transition(before: wire.Alert | None, new: wire.Transition) -> wire.Alert:
    """An alert, which may be new, once this was told of it."""
    told_at = (before.told_at if before is not None else None) or (new.at if _is_told(new) else None)
    if before is not None and new.change not in STATES:
        return msgspec.structs.replace(before, told_at=told_at, **_brought(before, new))
    fired_at = (before.fired_at if before is not None else None) or (new.at if new.state == "firing" else None)
    alert = alert_view(new, fired_at=fired_at, ended_at=new.at if new.state == "resolved" else None)
    return msgspec.structs.replace(alert, told_at=told_at, **(_brought(before, new) if before is not None else {}))


def _is_told(new: wire.Transition) -> bool:
    """Whether people are to be told that it fires."""
    return new.state == "firing" and new.change in (*STATES, "muted") and not new.muted and not new.quiet


def added_up(before: wire.Transition | None, new: wire.Transition) -> wire.Transition:
    """The same as one transition: the alert's last state, with everything that was told of it before and since."""
    if before is None:
        return new
    return msgspec.structs.replace(new if new.change in STATES else before, **_brought(before, new))


def _brought(before: wire.Alert | wire.Transition, new: wire.Transition) -> dict[str, object]:
    """What lasts, as it is after this change. Who takes care, or that nobody does, has a change of its own."""
    if new.change == "muted":
        return {"muted": new.muted}
    if new.change == "acknowledged":
        return {"acknowledged": new.acknowledged}
    told = {name: getattr(new, name) or getattr(before, name) for name in LASTING}
    if new.change not in STATES:
        told["acknowledged"] = before.acknowledged
    return told | {"acts": tuple(dict.fromkeys((*before.acts, *new.acts)))}


def with_lasting(alert: wire.Alert, before: wire.Alert | None) -> wire.Alert:
    """The alert with what was told of it earlier and it does not say itself."""
    if before is None:
        return alert
    missing = {name: getattr(before, name) for name in (*LASTING, "muted", "told_at") if not getattr(alert, name)}
    return msgspec.structs.replace(alert, **missing)


_OF_BOTH = tuple(name for name in wire.Transition.__struct_fields__ if name in wire.Alert.__struct_fields__)


def transition_of(alert: wire.Alert, *, at: float, change: wire.TransitionChange, **said: object) -> wire.Transition:
    """The alert as it is, and what this change says: `said` are fields of the transition."""
    same = {name: getattr(alert, name) for name in _OF_BOTH}
    return wire.Transition(**(same | said), at=at, change=change)


def alert_view(
    said: wire.Transition, *, fired_at: float | None, ended_at: float | None = None, stale: bool = False
) -> wire.Alert:
    """An alert as one transition, in words, tells it."""
    return wire.Alert(
        id=said.id,
        alert=said.alert,
        severity=said.severity,
        state=said.state,
        labels=said.labels,
        started_at=said.started_at,
        texts=said.texts,
        fired_at=fired_at,
        ended_at=ended_at,
        value=said.value,
        limit=said.limit,
        unit=said.unit,
        facts=said.facts,
        stale=stale,
        simulated=said.simulated,
        reason=said.reason,
        lowered_from=said.lowered_from,
        causes=said.causes,
        remedies=said.remedies,
        outcome=said.outcome,
        acts=said.acts,
        muted=said.muted,
        acknowledged=said.acknowledged,
    )
