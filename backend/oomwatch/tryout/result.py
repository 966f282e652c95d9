"""What trying a rule file gave: as JSON, for the page and for scripts. Times are Unix seconds."""

from typing import Literal

from msgspec import Struct

from oomwatch import wire

Change = Literal["same", "changed", "new", "gone"]


class Firing(Struct, frozen=True, kw_only=True):
    """One alert that fired, or would have. `ended_at` is None where it was open at the end."""

    alert: str
    severity: wire.Severity  # its rule's
    labels: dict[str, str]
    fired_at: float
    ended_at: float | None
    verdict: wire.AlertVerdict | None  # what became of the warning, where that is known by then


class Told(Struct, frozen=True, kw_only=True):
    """What one rule said. `open_seconds` is the sum over its alerts; `happened` of them preceded a failure."""

    count: int = 0
    subjects: tuple[str, ...] = ()  # those that it fired on most often first, some of them
    subjects_count: int = 0
    first_at: float | None = None
    last_at: float | None = None
    open_seconds: float = 0.0
    happened: int = 0
    false: int = 0
    avoided: int = 0


class RuleTried(Struct, frozen=True, kw_only=True):
    """One rule, tried and as it is in force. `change`: of what decides when it fires, overrides with it.

    `new` alerts overlap none that the rule in force gives on the same subject, `gone` ones none of the tried rule's.
    None: there was nothing to compare with.
    """

    alert: str
    severity: wire.Severity
    change: Change | None
    enabled: bool  # somewhere
    tried: Told
    in_force: Told | None
    new: int | None
    gone: int | None


class Tried(Struct, frozen=True, kw_only=True):
    """What was tried: all nodes that were chosen, from `start_at` to `end_at`. That is less than what was asked for
    where the budget did not suffice (`complete` is false then)."""

    wanted_start_at: float
    wanted_end_at: float
    start_at: float
    end_at: float
    complete: bool
    nodes: int
    gpus: int
    readings: int  # of GPUs and hosts
    took_seconds: float


class Tryout(Struct, frozen=True, kw_only=True):
    """The whole result. `new` and `gone` are the latest of these alerts, at most so many of each."""

    tried: Tried
    rules: tuple[RuleTried, ...]
    same: tuple[str, ...] = ()  # "alert/severity" of rules that judge alike in both files: not judged, unless asked for
    left_out: tuple[str, ...] = ()  # of rules that watch nothing but silence: not judged
    new: tuple[Firing, ...] = ()
    gone: tuple[Firing, ...] = ()
    defects: tuple[str, ...] = ()  # of rules, one sentence each
    count: int = 0  # alerts of the tried rules that were judged
    in_force_count: int | None = None
    note: str | None = None  # why there was nothing to compare with, where that was not asked for
