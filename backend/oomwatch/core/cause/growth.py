"""Causes that grow from step to step. What every phase holds more is split into what could hold it.

rise of the floors = tensors kept (torch allocated rises) + slack (reserved, not allocated) + strangers
                     + what is left: the engine, outside of the trainer's counters
"""

from collections.abc import Mapping
from typing import NamedTuple

from oomwatch import wire
from oomwatch.core.cause.finding import NONE, Finding, evidence, share
from oomwatch.core.facts import LENGTH_DRIVEN, Facts
from oomwatch.core.needs import work_of
from oomwatch.core.parts import named

GIB = float(2**30)
RISE_RATIO_MIN = 0.01  # of the card: less is no growth worth a name
RESIDUE_RATIO_MIN = 0.25  # of what it was
LENGTH_RATIO_MIN = 0.1  # of what it was
SURE, LIKELY, OPEN = 0.9, 0.6, 0.4
FLAT_SHARE = 0.5  # of the rise: torch's allocated memory did not rise with it
STRANGER_BYTES_MIN = 2 * GIB  # a context and libraries take up to this much
SLACK_RATIO_LARGE = 0.15  # of the card
GROWN_RATIO = 0.03  # of the card: by so much it has grown without doubt
BESIDE_GROWTH = 0.6  # there is always some slack: what had grown counts for more
SAVED_SHARE_MIN = 0.6  # of what the trainer gained
IMBALANCE_RATIO = 0.1  # of the card


class Split(NamedTuple):
    """Shares of the floors' rise; None: there is no telling."""

    total_bytes: float
    kept: float | None  # tensors
    slack: float
    strangers: float
    engine: float | None


def split(facts: Facts) -> Split:
    """Who holds what all phases have gained: by the card's process table, and within the trainer by torch's figures."""
    grown = {part.kind: part.rise_bytes for part in facts.parts}
    total = max(facts.floor_rise_bytes, facts.residue_rise_bytes)
    if {"engine", "trainer"} <= set(grown) and sum(grown.values()) > _worth_a_name(facts):
        return _by_process(facts, grown)
    strangers, slack = share(grown.get("stranger", 0.0), total), share(facts.slack_rise_bytes, total)
    rest = max(0.0, 1.0 - strangers - slack)
    told = facts.allocated_rise_bytes
    if told is not None and max(total, told) > facts.allocated_noise_bytes:
        longer = facts.active_rise_bytes if facts.length_rise_tokens > 0 else 0.0
        kept = min(rest, share(told - longer, total))
        return Split(total, kept, slack, strangers, rest - kept)
    return Split(total, None, slack, strangers, None)


def _by_process(facts: Facts, grown: Mapping[str, float]) -> Split:
    """What the trainer gained is tensors as far as torch has allocated more, and slack as far as it has reserved more.

    Where torch's figures tell neither, it is tensors; where they tell that nothing more is allocated, slack.
    """
    total = sum(grown.values())
    trainer, told = grown["trainer"] / total, facts.allocated_rise_bytes
    longer = facts.active_rise_bytes if facts.length_rise_tokens > 0 else 0.0
    kept = 1.0 if told is None else max(0.0, told - longer)
    reserved = facts.slack_rise_bytes
    if told is not None and kept + reserved <= FLAT_SHARE * grown["trainer"]:
        flat = grown["trainer"] > facts.allocated_noise_bytes and facts.slack_bytes is None
        flat = flat or reserved > _worth_a_name(facts)  # some of it was seen, and nothing more is allocated
        kept, reserved = (0.0, 1.0) if flat else (1.0, 0.0)
    tensors = trainer * share(kept, kept + reserved)
    strangers = sum(size for kind, size in grown.items() if kind not in ("trainer", "engine")) / total
    longest = max(total, facts.floor_rise_bytes, facts.residue_rise_bytes)  # processes may be known for less long
    return Split(longest, tensors, trainer - tensors, strangers, grown["engine"] / total)


def _worth_a_name(facts: Facts) -> float:
    return RISE_RATIO_MIN * (facts.capacity_bytes or float("inf"))


def risen(facts: Facts) -> float:
    """By how much memory that is compared from step to step rose."""
    return max(facts.peak_rise_bytes, split(facts).total_bytes)


def grows(facts: Facts) -> bool:
    return risen(facts) > _worth_a_name(facts)


def _floors_grow(facts: Facts, parts: Split) -> bool:
    return parts.total_bytes > _worth_a_name(facts)


def leak(facts: Facts) -> Finding:
    """Every phase holds more at its lowest, whatever the lengths, and torch's allocated memory rises with it."""
    parts = split(facts)
    if not _floors_grow(facts, parts):
        return NONE
    seen = [evidence("floors_rise", floor_rise_bytes=parts.total_bytes, steps=facts.steps)]
    if parts.kept is None:
        residue = share(facts.residue_rise_bytes, parts.total_bytes)
        return Finding((LIKELY - residue * (LIKELY - OPEN)) * (1 - parts.slack - parts.strangers), tuple(seen))
    if facts.allocated_rise_bytes:
        seen.append(evidence("allocated_rises", allocated_rise_bytes=facts.allocated_rise_bytes))
    trainer = named(facts.parts).get("trainer")
    if trainer is not None and trainer.rise_bytes > 0:
        seen.append(_part_grows(trainer.largest, trainer.rise_bytes, trainer.used_bytes))
    return Finding(SURE * parts.kept * (1 - kept_by_saving(facts)), tuple(seen))


def kept_by_saving(facts: Facts) -> float:
    """How likely what the trainer gained is left by its checkpoints, from 0 to 1: all of it came right after one."""
    return share(facts.saved_share - SAVED_SHARE_MIN, 1 - SAVED_SHARE_MIN)


def sleep_residue(facts: Facts) -> Finding:
    """What stays in use after the engine slept grows, and it is not the trainer's tensors."""
    parts = split(facts)
    before = facts.residue_before_bytes or 0.0
    told = facts.residue_rise_bytes > max(GIB, RESIDUE_RATIO_MIN * before)
    if not _floors_grow(facts, parts) or (facts.settings.free_cache_engine is False and not told):
        return NONE
    seen = []
    if told:
        seen.append(
            evidence(
                "residue_rises", residue_before_bytes=facts.residue_before_bytes, residue_bytes=facts.residue_bytes
            )
        )
    engine = named(facts.parts).get("engine")
    if engine is not None and engine.rise_bytes > 0:
        seen.append(_part_grows(engine.largest, engine.rise_bytes, engine.used_bytes))
    if facts.allocated_rise_bytes is not None and facts.allocated_rise_bytes < FLAT_SHARE * parts.total_bytes:
        seen.append(evidence("allocated_flat", floor_rise_bytes=facts.floor_rise_bytes or facts.residue_rise_bytes))
    if not seen:
        return NONE
    likely = parts.engine if parts.engine is not None else 0.7 * (1 - parts.slack - parts.strangers)
    return Finding(SURE * likely * (1.0 if told else 0.8), tuple(seen))


def fragmentation(facts: Facts) -> Finding:
    """Memory that torch reserved and cannot use grows, or was there when a request failed."""
    seen, score = [], 0.0
    oom = facts.oom
    if oom is not None and oom.slack_bytes and oom.tried_bytes and oom.slack_bytes >= oom.tried_bytes:
        seen.append(evidence("oom_slack", slack_bytes=oom.slack_bytes, tried_bytes=oom.tried_bytes))
        score = LIKELY + (SURE - LIKELY) * share(oom.slack_bytes, 0.1 * (facts.capacity_bytes or 80 * GIB))
        score *= 1 - BESIDE_GROWTH * share(risen(facts), GROWN_RATIO * (facts.capacity_bytes or 0.0))
    parts = split(facts)
    more = max(facts.slack_rise_bytes, parts.slack * parts.total_bytes)
    if more > _worth_a_name(facts):
        known = facts.slack_bytes is not None
        seen.append(
            evidence("slack_rises", slack_rise_bytes=more, slack_bytes=facts.slack_bytes)
            if known
            else evidence("reserved_rises", slack_rise_bytes=more)
        )
        score = max(score, SURE * share(more, max(parts.total_bytes, facts.peak_rise_bytes, more)))
    elif (facts.slack_bytes or 0.0) > SLACK_RATIO_LARGE * (facts.capacity_bytes or float("inf")):
        seen.append(evidence("slack_large", slack_bytes=facts.slack_bytes))
        score = max(score, OPEN)
    if facts.retry_steps and (seen or facts.watched == "retries"):
        seen.append(evidence("retries", retry_steps=facts.retry_steps))
        score = max(score + 0.1, OPEN)
    return Finding(min(1.0, score), tuple(seen)) if seen else NONE


def length_growth(facts: Facts) -> Finding:
    """Responses get longer, and what the phases take for their own work grows with them; their floors do not."""
    before = facts.length_before_tokens or 0.0
    if not facts.phases and facts.length_before_tokens is None:
        return _peaks_grow(facts)
    if facts.length_rise_tokens <= LENGTH_RATIO_MIN * before or before <= 0:
        return NONE
    seen = [evidence("length_rises", length_rise_tokens=round(facts.length_rise_tokens), steps=facts.steps)]
    if not grows(facts):
        return Finding(0.1, tuple(seen))
    active = share(_own_work(facts), facts.peak_rise_bytes) if facts.phases else facts.length_fit
    if facts.length_fit > 0:
        seen.append(evidence("peak_follows_length", length_fit_ratio=round(facts.length_fit, 2)))
    return Finding(SURE * active * (0.5 + 0.5 * facts.length_fit), tuple(seen), _driven_phase(facts))


def _own_work(facts: Facts) -> float:
    """What phases allocate more for their own work: not what came to all of them, also where floors do not show it."""
    return max(0.0, facts.active_rise_bytes - max(0.0, split(facts).total_bytes - facts.floor_rise_bytes))


def _driven_phase(facts: Facts) -> str | None:
    """The phase of those that lengths drive which is named, else the one that will be the highest."""
    if facts.told_phase in LENGTH_DRIVEN:
        return facts.told_phase
    driven = [one for one in facts.phases if one.phase in LENGTH_DRIVEN]
    return max(driven, key=lambda one: one.peak_bytes + one.peak_rise_bytes).phase if driven else None


def _peaks_grow(facts: Facts) -> Finding:
    """No step is told: work that grows is seen in the peaks, and not in what is always there."""
    more = facts.peak_rise_bytes - split(facts).total_bytes
    if more < 2 * _worth_a_name(facts):
        return NONE
    floor_rise = facts.floor_rise_bytes
    seen = evidence("peaks_rise", peak_rise_bytes=facts.peak_rise_bytes, floor_rise_bytes=floor_rise)
    return Finding(LIKELY * share(more, facts.peak_rise_bytes), (seen,))


def longest_batch(facts: Facts) -> Finding:
    """None was as long as the run allows, and one that is would not fit."""
    cap, longest, top = facts.settings.response_cap_tokens, facts.length_tokens, facts.top_phase
    if not cap or not longest or longest >= cap or top is None or not facts.capacity_bytes:
        return NONE
    at_cap = top.peak_bytes + work_of(top, facts.phases) * (cap / longest - 1)
    if at_cap <= facts.capacity_bytes or facts.length_fit <= 0 or top.phase == "rollout":
        return NONE
    seen = evidence("below_cap", length_tokens=round(longest), cap_tokens=cap)
    return Finding(OPEN * (1.0 if not grows(facts) else 0.5), (seen,), top.phase)


def leads_to_longest(facts: Facts) -> float:
    """How likely, from 0 to 1, something brings the run to its longest batch: then the cause is that, not the cap."""
    return max(length_growth(facts).score, imbalance(facts).score)


def imbalance(facts: Facts) -> Finding:
    """This rank holds much more than the others of its run in the same step."""
    own, peers, capacity = facts.peak_bytes, facts.peers_peak_bytes, facts.capacity_bytes
    if own is None or peers is None or not capacity:
        return NONE
    common = max(split(facts).total_bytes, facts.slack_rise_bytes)  # what came to all phases lately has another cause
    more = own - peers - common
    if more < IMBALANCE_RATIO * capacity:
        return NONE
    seen = evidence("peers", peak_bytes=own, peers_peak_bytes=peers)
    alone = 1.0 - 0.7 * share(facts.floor_rise_bytes, facts.peak_rise_bytes)  # it may have gained it all before
    return Finding(min(SURE, 0.5 + share(more, capacity)) * alone, (seen,), _driven_phase(facts))


def other_process(facts: Facts) -> Finding:
    """A process of somebody else is on the card, and without it there would be room."""
    stranger = named(facts.parts).get("stranger")
    if stranger is None or stranger.used_bytes < STRANGER_BYTES_MIN:
        return NONE
    seen = [evidence("stranger", process=stranger.largest or "?", used_bytes=stranger.used_bytes)]
    parts = split(facts)
    part = parts.strangers * share(parts.total_bytes, facts.peak_rise_bytes or parts.total_bytes)
    if stranger.rise_bytes > _worth_a_name(facts):
        seen.append(_part_grows(stranger.largest, stranger.rise_bytes, stranger.used_bytes))
        return Finding(SURE * part, tuple(seen))
    enough = share(stranger.used_bytes, facts.needed_bytes or stranger.used_bytes)
    return Finding(SURE * enough * (0.5 if grows(facts) else 1.0), tuple(seen))


def _part_grows(process: str, rise_bytes: float, used_bytes: float) -> wire.Evidence:
    return evidence("part_rises", process=process or "?", rise_bytes=rise_bytes, used_bytes=used_bytes)
