"""What the doctor says of a configuration: the JSON of `oomwatch doctor --json` and of the API, field by field.

Sentences are in the language that was asked for. Sizes are bytes; None is what is not known.
"""

from typing import Literal

from msgspec import Struct

from oomwatch import wire
from oomwatch.plan.verlkeys import Default

# "refused": verl would stop with it. "unknown": nothing says how much memory there is, or whose model it is.
Verdict = Literal["refused", "will_not_fit", "tight", "fits", "unknown"]
PhaseVerdict = Literal["fits", "tight", "will_not_fit"]
Severity = Literal["error", "warning", "info"]


class Version(Struct, frozen=True, kw_only=True):
    value: str  # the release whose settings were taken: "0.9.1"
    how: Literal["told", "keys", "assumed"]  # by the keys that it has, or the newest because nothing tells
    candidates: tuple[str, ...] = ()  # all releases that it may be of


class Model(Struct, frozen=True, kw_only=True):
    name: str
    parameters: int
    source: str  # where its shape was read
    verified: bool  # whether that was the published config.json or as good
    path: str | None = None  # as the configuration names it


class Card(Struct, frozen=True, kw_only=True):
    name: str
    usable_bytes: int
    total_bytes: int | None  # NVML's
    source: str
    verified: bool


class Input(Struct, frozen=True, kw_only=True):
    name: str
    kind: str  # what it was taken for: "yaml", "script", "printed", ...


class Origin(Struct, frozen=True, kw_only=True):
    """Where a value comes from: `place` is "ppo.yaml:12", "command line" or "verl 0.9.1"."""

    kind: Literal["default", "file", "override", "printed"]
    place: str


class Problem(Struct, frozen=True, kw_only=True):
    """`suggestion` is an override line. An error is what verl, Hydra or the shell would stop with."""

    severity: Severity
    key: str  # empty where it is about no setting
    message: str
    suggestion: str | None = None
    remedy: str | None = None  # what to do, in words
    check: str | None = None  # name of the rule that is broken
    numbers: dict[str, wire.ConfigValue] = {}
    verl_says: str | None = None  # the message that verl would stop with
    valid: tuple[int, ...] = ()  # the nearest values that pass, the nearest first
    place: str | None = None


class Shadowed(Struct, frozen=True, kw_only=True):
    """A value without effect, because another one wins."""

    key: str
    value: Default
    loses_to: str  # "16 (command line)"
    place: str  # of the value without effect
    winner: Default
    winner_place: str
    message: str


class Line(Struct, frozen=True, kw_only=True):
    """One number of the arithmetic. `formula` has the user's numbers: "60 × 12"."""

    name: str
    phase: str | None
    label: str
    formula: str
    value: int | None
    assumed: tuple[str, ...] = ()  # settings that nobody told: verl's default was taken
    missing: tuple[str, ...] = ()  # settings without which it is not known


class Part(Struct, frozen=True, kw_only=True):
    name: str
    label: str
    bytes: int
    formula: str
    source: str


class Memory(Struct, frozen=True, kw_only=True):
    """The device memory of the fullest GPU at the worst moment of a phase."""

    phase: str
    low_bytes: int
    expected_bytes: int
    high_bytes: int
    capacity_bytes: int
    verdict: PhaseVerdict
    label: str
    margin_bytes: int  # negative where it does not fit
    moment: str  # at which it peaks, in words
    trouble: str | None  # what keeps it from running at all, in words
    parts: tuple[Part, ...]


class Host(Struct, frozen=True, kw_only=True):
    """Of one node. `capacity_bytes` and `verdict` only where it was told what the node has."""

    low_bytes: int
    expected_bytes: int
    high_bytes: int
    capacity_bytes: int | None
    verdict: PhaseVerdict | None
    parts: tuple[Part, ...]


class Change(Struct, frozen=True, kw_only=True):
    key: str
    value_from: Default
    value_to: wire.ConfigValue
    override: str  # for verl's command line; with "+" where its configuration has no such key
    price: str | None = None  # in words; None of what verl would not start without


class Outcome(Struct, frozen=True, kw_only=True):
    """What the estimate says of the card with a change, or that verl would refuse it."""

    verdict: Verdict
    peak_phase: str | None
    expected_bytes: int | None  # of that phase
    high_bytes: int | None
    margin_ratio: float | None  # of the card, that is left at what is expected


class Advice(Struct, frozen=True, kw_only=True):
    """One change, tried by itself. `frees_bytes` is the difference of the estimates of `phase`."""

    remedy: str
    key: str
    value_from: Default
    value_to: wire.ConfigValue
    override: str
    text: str
    effect: str  # in words
    price: str
    price_level: int  # 1 nothing to speak of, 2 a little slower, 3 much slower or much work, 4 changes what is learned
    phase: str
    frees_bytes: int | None
    enough: bool  # whether it fits by this change alone
    outcome: Outcome
    source: str


class Plan(Struct, frozen=True, kw_only=True):
    """The changes to make together, in the order of their use, with what comes of all of them."""

    changes: tuple[Change, ...]
    override: str  # all of them, to be copied
    diff: str  # unified: "-key: 16", "+key: 4"
    outcome: Outcome
    enough: bool


class Largest(Struct, frozen=True, kw_only=True):
    """How far a setting can go, all else as it is, for the phases that depend on it."""

    key: str
    value: wire.ConfigValue | None  # the largest that fits with room; None: none does
    at_most: wire.ConfigValue | None  # the largest that is expected to fit, though it may turn out tight
    now: Default
    phases: tuple[str, ...]
    override: str | None  # that sets it to `value`


class Unknown(Struct, frozen=True, kw_only=True):
    key: str
    nearest: str | None
    place: str
    releases: tuple[str, ...]  # that have it
    message: str


class Complaint(Struct, frozen=True, kw_only=True):
    severity: Severity
    what: str
    place: str
    message: str
    remedy: str | None
    suggestion: str | None


class Shadow(Struct, frozen=True, kw_only=True):
    value: Default
    origin: Origin


class Setting(Struct, frozen=True, kw_only=True):
    key: str
    value: Default
    origin: Origin
    written: str | None  # where it refers to others: "${data.max_prompt_length}"
    shadows: tuple[Shadow, ...] = ()


class Missing(Struct, frozen=True, kw_only=True):
    """What was not told, what cannot be said without it, and how to tell it."""

    what: Literal["card", "model", "gpus", "phases"]
    message: str


class Report(Struct, frozen=True, kw_only=True):
    verdict: Verdict
    headline: str  # the verdict in a sentence
    derived: dict[str, int | str | None]
    problems: tuple[Problem, ...]  # errors first
    shadowed: tuple[Shadowed, ...]
    memory: tuple[Memory, ...]  # in the order of a step; empty where it cannot be estimated
    advice: tuple[Advice, ...]  # the best first
    plan: Plan | None  # None where nothing needs to change, or nothing helps
    kind: str  # what the first input was taken for
    inputs: tuple[Input, ...]
    version: Version
    strategy: Literal["fsdp", "fsdp2", "megatron"]
    model: Model | None
    critic_model: Model | None
    card: Card | None
    missing: tuple[Missing, ...]
    assumed: tuple[str, ...]  # what the estimate takes for granted, in words
    working: tuple[Line, ...]
    unknown: tuple[Unknown, ...]
    complaints: tuple[Complaint, ...]
    settings: tuple[Setting, ...]  # those that anybody set; verl's defaults only where asked for
    peak_phase: str | None
    largest: tuple[Largest, ...]
    host: Host | None
