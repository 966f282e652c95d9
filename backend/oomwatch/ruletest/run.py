"""Rule tests run, and what came out otherwise than expected."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from oomwatch import wire
from oomwatch.core.engine import Engine
from oomwatch.core.rule import RuleSet
from oomwatch.rulefile import read_rules
from oomwatch.ruletest.testfile import Expectation, ExpectedAlert, Read, RuleTest
from oomwatch.ruletest.world import START, lines_of
from oomwatch.trace import give
from oomwatch.units import format_duration
from oomwatch.wording import put_into_words

_ANNOTATIONS = ("summary", "description")


class Outcome(NamedTuple):
    tests: int
    checks: int
    differences: list[str]


def run_tests(read: Read) -> Outcome:
    """Run all tests of a file. Raises RuleFileError for a rule file that cannot be used."""
    rule_sets = [read_rules(read.path.parent / Path(name)).rules for name in read.file.rule_files]
    rules = RuleSet(
        rules=tuple(rule for one in rule_sets for rule in one.rules),
        overrides=tuple(override for one in rule_sets for override in one.overrides),
    )
    differences = [
        difference
        for test, places in zip(read.file.tests, read.places, strict=True)
        for difference in _differences(read.path, test, places, rules)
    ]
    checks = sum(len(test.alert_rule_test) for test in read.file.tests)
    return Outcome(len(read.file.tests), checks, differences)


def _differences(path: Path, test: RuleTest, places: Sequence[tuple[int, int]], rules: RuleSet) -> Iterator[str]:
    """A message for each expectation that was not met."""
    known = {rule.alert for rule in rules.rules}
    for expected, (line, column) in zip(test.alert_rule_test, places, strict=True):
        place = f"{path}:{line}:{column}: " + (f"{test.name}: " if test.name else "")
        if expected.alertname not in known:
            yield f'{place}there is no rule "{expected.alertname}"; known are {", ".join(sorted(known))}'
            continue
        firing = _firing(test, rules, float(expected.eval_time), expected.alertname)
        told = list(_compared(expected, firing))
        if told:
            at = format_duration(float(expected.eval_time))
            yield "\n".join([f"{place}at {at}, {expected.alertname}:", *told])


def _firing(test: RuleTest, rules: RuleSet, at: float, alert: str) -> list[wire.Transition]:
    """The alerts of a rule that are firing at a time, in words."""
    engine = Engine(rules)
    firing: dict[str, wire.Transition] = {}
    for line in lines_of(test, at):
        for transition in give(engine, line):
            if transition.state == "resolved":
                firing.pop(transition.id, None)
            elif transition.state == "firing" and transition.change in ("state", "severity"):
                firing[transition.id] = transition
    if engine.defects:
        raise engine.defects[0].error
    return [put_into_words(one, rules, simulated=False) for one in firing.values() if one.alert == alert]


def _compared(expected: Expectation, firing: list[wire.Transition]) -> Iterator[str]:
    left = list(firing)
    for wanted in expected.exp_alerts:
        labels = {name: str(value) for name, value in wanted.exp_labels.items()}
        found = next((one for one in left if _labels(one) == labels), None)
        if found is None:
            yield f"    expected, and not firing: {_shown(labels)}"
            continue
        left.remove(found)
        yield from _texts_compared(wanted, found)
    for one in left:
        since = format_duration(float(round(one.at - START, 3)))
        yield f"    firing, and not expected: {_shown(_labels(one))} since {since}: {one.texts['en'].summary}"


def _texts_compared(wanted: ExpectedAlert, found: wire.Transition) -> Iterator[str]:
    annotations = _annotations(found)
    for name, text in wanted.exp_annotations.items():
        if annotations.get(name) != text:
            yield f"    {name} of {_shown(_labels(found))}"
            yield f"        expected: {text}"
            yield f"        said:     {annotations.get(name, '(nothing of that name)')}"


def _labels(one: wire.Transition) -> dict[str, str]:
    return {"severity": one.severity, **one.labels}


def _annotations(one: wire.Transition) -> dict[str, str]:
    """ "summary" and "description" in English; in Chinese "summary_zh" and "description_zh"."""
    return {
        name + ("" if language == "en" else f"_{language}"): getattr(text, name)
        for language, text in one.texts.items()
        for name in _ANNOTATIONS
    }


def _shown(labels: dict[str, str]) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items())) + "}"
