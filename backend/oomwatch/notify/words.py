"""Messages in words: titles, places, figures and durations, in the language of the catalogue. Pure."""

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import msgspec

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.notify.grouping import Group

T = TypeVar("T", bound=Hashable)


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """How a channel is to speak: its language, and the page's address for links (None: no links)."""

    language: wire.Language = "en"
    external_url: str | None = None

    def link(self, alert_id: str) -> str | None:
        return None if self.external_url is None else f"{self.external_url.rstrip('/')}/#/alerts?id={alert_id}"


def title(group: Group, language: wire.Language) -> str:
    """ "gpu_memory_high on 8 GPUs of gpu-07 (run qwen7b): up to 93 %", with DEMO in front where it is simulated."""
    subject = where(group, language)
    alert = group.topic.alert
    text = say("notify.title", language, alert=alert, where=subject) if subject else alert
    text = _resolved(group, text, language) if group.state == "resolved" else _with_value(group, text, language)
    return say("notify.title_demo", language, title=text) if group.topic.simulated else text


def _with_value(group: Group, text: str, language: wire.Language) -> str:
    one = worst(group)
    value = figure(one.value, one.unit, language)
    if value is None:
        return text
    if len(group.transitions) == 1:
        key = "notify.title_value"
    else:
        key = "notify.title_down_to" if _falls(one) else "notify.title_up_to"
    return say(key, language, title=text, value=value)


def _resolved(group: Group, text: str, language: wire.Language) -> str:
    key = "notify.title_resolved" if len(group.transitions) == 1 else "notify.title_resolved_up_to"
    return say(key, language, title=text, duration=duration(lasted_seconds(group), language))


def where(group: Group, language: wire.Language) -> str:
    """The subjects of a message: "GPU 3 of gpu-07", "16 GPUs of 2 nodes (run qwen7b)"; empty where there is none."""
    gpus = _distinct((one.labels.get("node"), one.labels["gpu"]) for one in group.transitions if "gpu" in one.labels)
    nodes = _distinct(one.labels["node"] for one in group.transitions if "node" in one.labels)
    place = _nodes(nodes, language)
    if gpus and place:
        what = say("notify.gpu", language, gpu=gpus[0][1]) if len(gpus) == 1 else _count("notify.gpus", gpus, language)
        place = say("notify.of", language, part=what, whole=place)
    run = group.topic.run
    if run is None:
        return place
    run = say("notify.run", language, run=run)
    return say("notify.in_run", language, where=place, run=run) if place else run


def _nodes(nodes: Sequence[str], language: wire.Language) -> str:
    if len(nodes) > 1:
        return _count("notify.nodes", nodes, language)
    return nodes[0] if nodes else ""


def _count(key: str, things: Sequence[object], language: wire.Language) -> str:
    return say(key, language, count=len(things))


def worst(group: Group) -> wire.Transition:
    """The transition whose value is furthest beyond its limit; the first where there are no values."""
    measured = [one for one in group.transitions if one.value is not None]
    if not measured:
        return group.transitions[0]
    sign = -1 if _falls(measured[0]) else 1
    return max(measured, key=lambda one: sign * (one.value or 0.0))


def _falls(transition: wire.Transition) -> bool:
    """Whether low values are the bad ones."""
    value, limit = transition.value, transition.limit
    return value is not None and limit is not None and value < limit and transition.state == "firing"


def lasted_seconds(group: Group) -> float:
    """The longest that any of them lasted."""
    return max(one.at - one.started_at for one in group.transitions)


def text_of(transition: wire.Transition, language: wire.Language) -> wire.AlertText:
    """What the rule says, in this language or, where it was never written, in English."""
    known = transition.texts.get(language) or transition.texts.get("en")
    return known or wire.AlertText(summary=transition.alert, description="")


def reason(transition: wire.Transition, language: wire.Language) -> str | None:
    """Why it was resolved, where that is something else than recovery."""
    known = {"rule removed": "notify.reason_rule_removed", "run ended": "notify.reason_run_ended"}
    if transition.state != "resolved" or transition.reason in (None, "recovered"):
        return None
    return say(known[transition.reason], language) if transition.reason in known else transition.reason


def figure(value: float | None, unit: str | None, language: wire.Language) -> str | None:
    """A value with its unit: "93 %", "74.5 GiB", "12 min"; None where there is none."""
    if value is None:
        return None
    if unit == "ratio":
        return f"{_percent(value)} %"
    if unit == "bytes":
        return f"{value / 2**30:.1f} GiB"
    if unit == "seconds":
        return duration(value, language)
    if unit == "per_minute":
        return say("notify.per_minute", language, value=f"{value:.3g}")
    return f"{value:.6g}"


def _percent(ratio: float) -> str:
    """Whole percents; the last one before full with a decimal, so that 100 means full."""
    almost_full = 0.99 <= ratio < 1  # noqa: PLR2004
    return f"{math.floor(ratio * 1000) / 10:.1f}" if almost_full else f"{ratio * 100:.0f}"


def duration(seconds: float, language: wire.Language) -> str:
    """Two units at most: "45 s", "12 min", "2 h 5 min", "3 d 4 h"."""
    whole = max(0, round(seconds))
    sizes = (("notify.days", 86400), ("notify.hours", 3600), ("notify.minutes", 60), ("notify.seconds", 1))
    start = next((index for index, (_, size) in enumerate(sizes) if whole >= size), len(sizes) - 1)
    parts: list[str] = []
    for key, size in sizes[start : start + 2]:
        count, whole = divmod(whole, size)
        if count or not parts:
            parts.append(say(key, language, count=count))
        if key == "notify.minutes":
            break  # nobody reads the seconds of minutes
    return " ".join(parts)


def _distinct(things: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(things))
