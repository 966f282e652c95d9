"""A warning that time has not yet told of, and the failures that may be what it warned of."""

import msgspec

from oomwatch import wire
from oomwatch.core.subject import Channel, Subject

ETA_FACTOR = 2.0  # a forecast that is still up when twice its latest time has passed was false
FAILURES: dict[type[msgspec.Struct], Channel] = {wire.DeviceOom: "device", wire.HostOom: "host", wire.DiskFull: "disk"}


class Warned(msgspec.Struct):
    """One warning that time has not yet told of."""

    told: wire.Transition  # the last change of state or severity
    channel: Channel
    subject: Subject
    run: str | None
    warned_at: float  # when it fired, or was raised again
    facts: dict[str, wire.Fact]  # as they were then
    level: bool = False  # it told how it was, not how it would be
    calm_at: float | None = None
    tenants: frozenset[int] | None = None  # processes on the GPU that are not the run's; None: not yet looked
    tenant_left: bool = False

    @property
    def due_at(self) -> float | None:
        """When the failure was forecast for; None where the warning is no forecast."""
        eta = self.facts.get("eta_seconds")
        return self.warned_at + eta if isinstance(eta, int | float) else None

    @property
    def false_at(self) -> float | None:
        """When the latest time of the forecast has passed twice over; None where the warning is no forecast."""
        due_at, high = self.due_at, self.facts.get("eta_high_seconds")
        if due_at is None:
            return None
        latest = self.warned_at + high if isinstance(high, int | float) else due_at
        return self.warned_at + ETA_FACTOR * (max(latest, due_at) - self.warned_at)


class Failure(msgspec.Struct, frozen=True):
    """Something ran full. `place` is a GPU, a node, or the run where its node is not known."""

    at: float
    channel: Channel
    place: Subject
    run: str | None

    def concerns(self, warning: Warned) -> bool:
        """Whether it is of what was warned of: of the same place, or for a GPU, of any rank of its run."""
        if self.channel != warning.channel:
            return False
        if self.run is not None and warning.run is not None:
            of_run = self.run == warning.run
            if self.channel == "device" or self.place.scope == "run":
                return of_run
        if self.place.scope == "gpu" and self.channel == "device":
            return self.place == warning.subject
        return self.place.scope != "run" and self.place.name == warning.subject.name
