"""What a transition says to people: the texts of its rule, filled in with its numbers. Pure."""

import functools
import re
from collections.abc import Iterable

import msgspec

from oomwatch import wire
from oomwatch.catalogue import agreed, entries, say
from oomwatch.core.rule import Rule, RuleSet, RuleText
from oomwatch.figures import DUE_SECONDS, figure, how_soon, is_due, named_figure

PLACEHOLDER = re.compile(r"\{(\w+)\}")
# "[, phase {phase}]" is left out where a number in it is not known.
_OPTIONAL = re.compile(r"\[([^\[\]]*\{\w+\}[^\[\]]*)\]")
# What clauses that are left out, and the folded lines of YAML, leave behind; Chinese has no space after its stops.
_SPACES = re.compile(r" {2,}")
_SPACES_AFTER_STOP = re.compile(r"(?<=[，。；：！？、（）]) +")
SHAPES_KEPT = 4096  # of sentences; a site's rules have some hundred, each known in a few ways
LABELS = ("node", "gpu", "run")
# What every text may mention; conditions add their own facts.
COMMON_NAMES = (*LABELS, "value", "limit", "for")
# Of a rule whose conditions tell one of these: when it comes true, in words.
HOW_SOON, _TELL_HOW_SOON = "how_soon", frozenset({"eta_seconds", "eta_steps"})
# Facts whose values are of a closed list: where the catalogue has the words of each.
_WORDED = {"limited_by": "fact", "phase": "phase", "because": "because", "part": "plan.part"}


def put_into_words(transition: wire.Transition, rules: RuleSet, *, simulated: bool) -> wire.Transition:
    """The same transition with its texts in every language; an alert whose rule is gone says its name."""
    rule = rules.of(transition)
    texts = {
        language: _fill(_text_now(transition, rule, language), _values(transition, rule, language), language)
        for language in wire.LANGUAGES
    }
    causes = tuple(_cause_in_words(cause) for cause in transition.causes)
    return msgspec.structs.replace(transition, texts=texts, causes=causes, simulated=simulated)


def _cause_in_words(cause: wire.Cause) -> wire.Cause:
    """Its name, and a sentence for each observation. What has its words keeps them."""
    if cause.texts:
        return cause
    names = {language: say(f"cause.{cause.cause}", language) for language in wire.LANGUAGES}
    return msgspec.structs.replace(cause, texts=names, evidence=tuple(_in_words(one) for one in cause.evidence))


def _in_words(observed: wire.Evidence) -> wire.Evidence:
    texts = {
        language: say(
            f"evidence.{observed.key}",
            language,
            **{name: _fact(name, fact, language) for name, fact in observed.facts.items()},
        )
        for language in wire.LANGUAGES
    }
    return msgspec.structs.replace(observed, texts=texts)


def rule_view(rule: Rule) -> wire.Rule:
    """A rule as the page lists it: its texts still hold their placeholders."""
    return wire.Rule(
        alert=rule.alert,
        severity=rule.severity,
        scope=" ".join(rule.scopes),
        for_seconds=rule.for_seconds,
        keep_firing_for_seconds=rule.keep_firing_for_seconds,
        keep_firing_steps=rule.keep_firing_steps,
        when=tuple(msgspec.Raw(msgspec.json.encode(condition, enc_hook=float)) for condition in rule.when),
        texts={language: _as_wire(text) for language, text in rule.texts.items()},
    )


def names_of(facts: Iterable[str]) -> set[str]:
    """What a text may mention, whose conditions tell these facts."""
    told = set(facts)
    return {*COMMON_NAMES, *told, *({HOW_SOON} if told & _TELL_HOW_SOON else ())}


def _text_of(rule: Rule | None, language: str, alert: str) -> RuleText:
    texts = rule.texts if rule else {}
    return texts.get(language) or texts.get("en") or RuleText(summary=alert, description="")


def _text_now(transition: wire.Transition, rule: Rule | None, language: wire.Language) -> RuleText:
    """What is said of how long it has held is not true yet of what waits for that."""
    text = _text_of(rule, language, transition.alert)
    if rule is None or transition.state != "pending" or "{for}" not in text.description:
        return text
    waits = say("fact.not_held_yet", language, seconds=figure(rule.for_seconds, "seconds", language))
    return msgspec.structs.replace(text, description=waits)


def _values(transition: wire.Transition, rule: Rule | None, language: wire.Language) -> dict[str, str]:
    values = {name: _fact(name, fact, language) for name, fact in transition.facts.items() if _says(name, fact)}
    values |= transition.labels
    for name, number in (("value", transition.value), ("limit", transition.limit)):
        if number is not None:
            values[name] = figure(number, transition.unit, language)
    values["for"] = figure(rule.for_seconds if rule else 0.0, "seconds", language)
    return values | _foretold(transition, language)


def _foretold(transition: wire.Transition, language: wire.Language) -> dict[str, str]:
    """When a forecast comes true; where that is now, its numbers are told as no numbers."""
    soon = how_soon(transition.facts, language)
    if soon is None:
        return {}
    due = ("eta_seconds", *(("value",) if transition.unit == "seconds" else ())) if is_due(transition.facts) else ()
    return {HOW_SOON: soon} | dict.fromkeys(due, say("figure.moment", language))


def _says(name: str, fact: wire.Fact) -> bool:
    """Bounds of a time that is up, and no steps at all, tell a reader nothing."""
    if not isinstance(fact, int | float):
        return True
    if name in ("eta_low_seconds", "eta_high_seconds"):
        return fact >= DUE_SECONDS
    return name != "eta_steps" or fact >= 1


def _fact(name: str, fact: wire.Fact, language: wire.Language) -> str:
    """A fact in words; one of a list that is longer by now, as it is."""
    if name in _WORDED and (key := f"{_WORDED[name]}.{fact}") in entries():
        return say(key, language)
    return named_figure(name, fact, language)


def _fill(text: RuleText, values: dict[str, str], language: wire.Language) -> wire.AlertText:
    unknown = say("figure.unknown", language)

    def fill(sentence: str) -> str:
        known = tuple([(name, values[name] == "1") for name in _names_in(sentence) if name in values])
        parts = _shaped(sentence, known, language)
        return "".join([values.get(part, unknown) if at % 2 else part for at, part in enumerate(parts)])

    return wire.AlertText(
        summary=fill(text.summary),
        description=fill(text.description),
        advice=tuple(fill(remedy) for remedy in text.advice),
    )


@functools.lru_cache(SHAPES_KEPT)
def _names_in(sentence: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(PLACEHOLDER.findall(sentence)))


@functools.lru_cache(SHAPES_KEPT)
def _shaped(sentence: str, known: tuple[tuple[str, bool], ...], language: wire.Language) -> list[str]:
    """A sentence in which these names are known (true: and are 1): text and the name to be filled in, by turns."""
    ones = dict(known)

    def keep(match: re.Match[str]) -> str:
        return match[1] if all(name in ones for name in PLACEHOLDER.findall(match[1])) else ""

    sentence = agreed(_OPTIONAL.sub(keep, sentence), {name: int(one) for name, one in known}, language)
    return PLACEHOLDER.split(_SPACES_AFTER_STOP.sub("", _SPACES.sub(" ", sentence)).strip())


def _as_wire(text: RuleText) -> wire.AlertText:
    return wire.AlertText(summary=text.summary, description=text.description, advice=text.advice)
