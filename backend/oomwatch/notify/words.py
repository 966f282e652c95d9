"""Messages in words: titles, places and reasons, in the language of the catalogue. Pure."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import msgspec

from oomwatch import wire
from oomwatch.catalogue import entries, say
from oomwatch.core.rule import severity_of
from oomwatch.figures import duration, judged_figure
from oomwatch.notify.notice import Notice

T = TypeVar("T", bound=Hashable)
_PREFIXES = {"repeat": "notify.title_repeat", "escalation": "notify.title_escalation"}


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """How a channel is to speak: its language, and the page's address for links (None: no links)."""

    language: wire.Language = "en"
    external_url: str | None = None

    def link(self, alert_id: str) -> str | None:
        return None if self.external_url is None else f"{self.external_url.rstrip('/')}/#/alerts?id={alert_id}"

    def incident_link(self, incident: wire.Fact | None) -> str | None:
        """Where the report of an incident will be, some seconds after the alert."""
        if self.external_url is None or incident is None:
            return None
        return f"{self.external_url.rstrip('/')}/api/v1/incidents/{incident}.html"


def title(notice: Notice, language: wire.Language) -> str:
    """ "gpu_memory_high on 8 GPUs of gpu-07 (run qwen7b): up to 93 %", with DEMO in front where it is simulated."""
    if notice.kind == "channel":
        return channel_title(notice, language)
    subject = where(notice, language)
    alert = _name(notice, language)
    text = say("notify.title", language, alert=alert, where=subject) if subject else alert
    text = _resolved(notice, text, language) if notice.state == "resolved" else _with_value(notice, text, language)
    if notice.kind in _PREFIXES:
        text = say(_PREFIXES[notice.kind], language, title=text)
    return say("notify.title_demo", language, title=text) if notice.simulated else text


def channel_title(notice: Notice, language: wire.Language) -> str:
    key = "notify.title_channel_ok" if notice.state == "resolved" else "notify.title_channel_failed"
    return say(key, language, channel="" if notice.channel is None else notice.channel.name)


def _name(notice: Notice, language: wire.Language) -> str:
    """The rule, or how many rules where it is about several."""
    return notice.alert or _count("notify.alerts", _distinct(one.alert for one in shown(notice)), language)


def is_mixed(notice: Notice) -> bool:
    """Whether it tells of several rules, whose values cannot be compared."""
    return len({one.alert for one in notice.news}) > 1


def shown(notice: Notice) -> Sequence[wire.Transition]:
    """Those of the news that are as the message says: where some fire and some are over, the ones that fire."""
    return [one for one in notice.news if (one.state == "resolved") == (notice.state == "resolved")] or notice.news


def _with_value(notice: Notice, text: str, language: wire.Language) -> str:
    one = worst(notice)
    value = judged_figure(one, language)
    if value is None or is_mixed(notice):
        return text
    key = "notify.title_value" if len(shown(notice)) == 1 else _extreme(one)
    return say(key, language, title=text, value=value)


def _extreme(one: wire.Transition) -> str:
    """The key that calls its value the worst of several: languages name an end of times otherwise than one of sizes."""
    if one.unit == "seconds":
        return "notify.title_shortest" if _falls(one) else "notify.title_longest"
    return "notify.title_down_to" if _falls(one) else "notify.title_up_to"


def _resolved(notice: Notice, text: str, language: wire.Language) -> str:
    key = "notify.title_resolved" if len(shown(notice)) == 1 else "notify.title_resolved_up_to"
    return say(key, language, title=text, duration=duration(lasted_seconds(notice), language))


def where(notice: Notice, language: wire.Language) -> str:
    """The subjects of a message: "GPU 3 of gpu-07", "16 GPUs of 2 nodes (run qwen7b)"; empty where there is none."""
    about = shown(notice)
    gpus = _distinct((one.labels.get("node"), one.labels["gpu"]) for one in about if "gpu" in one.labels)
    nodes = _distinct(one.labels["node"] for one in about if "node" in one.labels)
    whole = _nodes(nodes, language)
    if gpus and whole:
        what = say("notify.gpu", language, gpu=gpus[0][1]) if len(gpus) == 1 else _count("notify.gpus", gpus, language)
        whole = say("notify.of", language, part=what, whole=whole)
    run = notice.run
    if run is None:
        return whole
    run = say("notify.run", language, run=run)
    return say("notify.in_run", language, where=whole, run=run) if whole else run


def _nodes(nodes: Sequence[str], language: wire.Language) -> str:
    if len(nodes) > 1:
        return _count("notify.nodes", nodes, language)
    return nodes[0] if nodes else ""


def subject(transition: wire.Transition, language: wire.Language, *, named: bool = False) -> str:
    """One of several, in a line: "gpu-07 GPU 3: 93 %"; `named`: with the alert's name in front."""
    at = " ".join(part for part in (transition.alert if named else None, place(transition, language)) if part)
    if transition.state == "resolved":
        lasted = duration(transition.at - transition.started_at, language)
        said: str | None = say("notify.resolved_after", language, duration=lasted)
    else:
        said = judged_figure(transition, language)
    return say("notify.labelled", language, label=at, text=said) if at and said else at or said or ""


def place(transition: wire.Transition, language: wire.Language) -> str:
    """ "gpu-07 GPU 3"; empty where it is about neither node nor GPU."""
    labels = transition.labels
    gpu = say("notify.gpu", language, gpu=labels["gpu"]) if "gpu" in labels else None
    return " ".join(part for part in (labels.get("node"), gpu) if part)


def acts_of(transition: wire.Transition, language: wire.Language) -> list[str]:
    """What agents did because of an alert, a line each: "Memory snapshot: done on gpu-07 - 91 s of history - /path"."""
    return [_act(one, language) for one in transition.acts]


def _act(one: wire.Act, language: wire.Language) -> str:
    name = say(f"act.{one.act}", language) if f"act.{one.act}" in entries() else one.act
    said = say("alerts.act_done" if one.ok else "alerts.act_failed", language, act=name, node=one.node)
    return " - ".join(part for part in (said, one.detail, one.path) if part)


def _count(key: str, things: Sequence[object], language: wire.Language) -> str:
    return say(key, language, count=len(things))


def worst(notice: Notice) -> wire.Transition:
    """The gravest; of these, and of the first one's rule, the one whose value is furthest beyond its limit."""
    gravest = max(wire.SEVERITIES.index(severity_of(one)) for one in shown(notice))
    graves = [one for one in shown(notice) if wire.SEVERITIES.index(severity_of(one)) == gravest]
    measured = [one for one in graves if one.value is not None and one.alert == graves[0].alert]
    if not measured:
        return graves[0]
    sign = -1 if _falls(measured[0]) else 1
    return max(measured, key=lambda one: sign * (one.value or 0.0))


def _falls(transition: wire.Transition) -> bool:
    """Whether low values are the bad ones."""
    value, limit = transition.value, transition.limit
    return value is not None and limit is not None and value < limit and transition.state == "firing"


def lasted_seconds(notice: Notice) -> float:
    """The longest that any of them lasted."""
    return max(one.at - one.started_at for one in shown(notice))


def text_of(transition: wire.Transition, language: wire.Language) -> wire.AlertText:
    """What the rule says, in this language or, where it was never written, in English."""
    known = transition.texts.get(language) or transition.texts.get("en")
    return known or wire.AlertText(summary=transition.alert, description="")


def cause(transition: wire.Transition, language: wire.Language) -> str | None:
    """The most likely cause with what speaks for it: "A leak: ... (the least that every phase holds rose by 9 GiB)"."""
    if not transition.causes or transition.state == "resolved":
        return None
    first = transition.causes[0]
    name = first.texts.get(language, first.cause)
    seen = say("notify.and", language).join(one.texts[language] for one in first.evidence if language in one.texts)
    return say("notify.because", language, cause=name, evidence=seen) if seen else name


def remedies(transition: wire.Transition, language: wire.Language) -> list[tuple[str, str | None]]:
    """What to change, the most useful first, each with the line to copy where there is one."""
    if transition.state == "resolved":
        return []
    return [(one.texts.get(language, one.remedy), one.override) for one in transition.remedies]


def reason(transition: wire.Transition, language: wire.Language) -> str | None:
    """Why it was resolved, where that is something else than recovery."""
    if transition.state != "resolved" or transition.reason is None or transition.reason == "recovered":
        return None
    return say(f"reason.{transition.reason.replace(' ', '_')}", language)


def verdict(outcome: wire.Outcome, language: wire.Language) -> str:
    """What became of a warning: "it happened, 12 min after the alert"."""
    said = say(f"outcome.{outcome.verdict}", language)
    if outcome.lead_seconds is None:
        return said
    return say("notify.outcome_lead", language, verdict=said, lead=duration(outcome.lead_seconds, language))


def _distinct(things: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(things))
