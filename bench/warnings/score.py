"""Were the warnings worth it: recall, lead, false alarms, the cause named, and whether the advice would have helped.

A failing run counts as warned where an alert of what failed (the GPU that did, or the host) was open at the failure,
and began at least one step before it. An alert that ended and was raised again within ten steps is one. What began
before anything was wrong counts from there.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bench.warnings.detectors import Episode
from bench.warnings.simulate import Story, simulate
from bench.warnings.spec import Spec, Truth

from oomwatch import wire

GAP_STEPS = 10
# What these say is no warning of memory: it has happened, or something else is the matter.
NO_FORECAST = ("out_of_memory", "agent_silent", "gpu_lost", "rollout_time_jump", "reshard_storm")
RESTART = "restart_periodically"


class Warned(NamedTuple):
    """What a failing run was told in time."""

    alert: str
    lead_steps: int
    lead_seconds: float
    since_onset_steps: int  # the longest lead that there was to have
    cause: str | None
    remedies: tuple[wire.Remedy, ...]


class Verdict(NamedTuple):
    """What one detector did in one run."""

    warned: Warned | None  # None of a healthy run, and of one that nobody warned
    false_alarms: tuple[str, ...]  # the alerts, in a healthy run
    steady: int  # of a healthy run: alerts that were lowered to information
    tried: tuple[bool, ...]  # whether each remedy that can be applied prevents the failure, best first
    defects: int


def judge(spec: Spec, story: Story, truth: Truth, episodes: Sequence[Episode], defects: int) -> Verdict:
    if not truth.fails:
        false = tuple(one.alert for one in episodes if not one.steady)
        return Verdict(None, false, sum(one.steady for one in episodes), (), defects)
    warned = warning_of(spec, story, truth, episodes)
    tried = tuple(_prevents(spec, one) for one in applicable(spec, warned.remedies)) if warned else ()
    return Verdict(warned, (), 0, tried, defects)


# ---------------------------------------------------------------- in time?


def warning_of(spec: Spec, story: Story, truth: Truth, episodes: Sequence[Episode]) -> Warned | None:
    assert truth.oom_at is not None
    assert truth.oom_step is not None
    ended = [one.at for one in story.finished]
    step_seconds = truth.oom_at / max(1, truth.oom_step)
    began = ended[spec.onset - 2] if 2 <= spec.onset <= len(ended) + 1 else 0.0
    first: Episode | None = None
    for chain in _chains(truth, episodes, GAP_STEPS * step_seconds):
        if first is None or chain[0].start < first.start:
            first = _with_words(chain)
    if first is None:
        return None
    start = max(first.start, began)
    at_step = 1 + sum(at <= start for at in ended)
    if truth.oom_step - at_step < 1:
        return None
    cause = first.causes[0].cause if first.causes else None
    lead = truth.oom_step - at_step
    return Warned(first.alert, lead, truth.oom_at - start, truth.oom_step - max(1, spec.onset), cause, first.remedies)


def _with_words(chain: list[Episode]) -> Episode:
    """The chain's beginning, with the first causes and remedies that were told in it."""
    told = next((one for one in chain if one.causes), chain[0])
    return chain[0]._replace(causes=told.causes, remedies=told.remedies)


def _chains(truth: Truth, episodes: Sequence[Episode], gap_seconds: float) -> list[list[Episode]]:
    """Of each alert that is open at the failure: its spells, as far back as they are near one another."""
    assert truth.oom_at is not None
    by_alert: dict[tuple[str, str | None], list[Episode]] = {}
    for one in episodes:
        if one.start < truth.oom_at and one.alert not in NO_FORECAST and one.gpu in (None, truth.gpu):
            by_alert.setdefault((one.alert, one.gpu), []).append(one)
    return [
        _near(spells, gap_seconds)
        for spells in by_alert.values()
        if any(spell.is_open_at(truth.oom_at) for spell in spells)
    ]


def _near(spells: list[Episode], gap_seconds: float) -> list[Episode]:
    chain = [spells[-1]]
    for spell in reversed(spells[:-1]):
        if spell.end is not None and chain[0].start - spell.end > gap_seconds:
            break
        chain.insert(0, spell)
    return chain


# ---------------------------------------------------------------- would it have helped?


def applicable(spec: Spec, remedies: Sequence[wire.Remedy]) -> list[wire.Remedy]:
    """The remedies that change this run: those that name a key and a value. Restarts may leave save_freq as it is."""
    return [
        one
        for one in remedies
        if one.value_to is not None and (one.remedy == RESTART or spec.config.get(one.key or "") != one.value_to)
    ]


def _prevents(spec: Spec, remedy: wire.Remedy) -> bool:
    return simulate(*treated(spec, remedy)).ending is None


def treated(spec: Spec, remedy: wire.Remedy) -> tuple[Spec, dict[str, wire.ConfigValue]]:
    """The spec and what to change of its configuration, with a remedy applied. The change is a Hydra override."""
    change = {remedy.key: remedy.value_to} if remedy.key is not None and remedy.value_to is not None else {}
    if remedy.remedy != RESTART:
        return spec, change
    every = remedy.value_to if isinstance(remedy.value_to, int) and remedy.value_to > 0 else None
    return spec._replace(nature=spec.nature._replace(restart_every=every)), change
