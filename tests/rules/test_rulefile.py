"""alerts.yaml: what is read, and how mistakes are told."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomwatch.rulefile import RuleFileError, parse_rules, read_rules

ROOT = Path(__file__).resolve().parents[2]
ENTRY = """rules:
  - alert: full
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    summary: "{node} {gpu} {value}"
"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(RuleFileError) as caught:
        parse_rules(text)
    return [f"{one.line}:{one.column} {one.message}" for one in caught.value.mistakes]


def test_the_shipped_file_has_the_four_rules_and_what_they_cannot_see() -> None:
    keys = [rule.key for rule in read_rules(ROOT / "alerts.yaml").rules.rules]
    assert keys[:4] == [
        "gpu_memory_high/warning",
        "torch_reserved_high/critical",
        "rollout_time_jump/warning",
        "reshard_storm/warning",
    ]
    assert {
        "memory_forecast/warning",
        "memory_forecast/critical",
        "host_memory_high/warning",
        "host_memory_high/critical",
        "out_of_memory/critical",
        "agent_silent/critical",
        "gpu_lost/critical",
        "longest_batch_too_big/warning",
        "sleep_residue_grows/critical",
        "allocator_retries/critical",
        "memory_fragmented/warning",
        "rank_imbalance/warning",
        "response_length_drift/info",
        "memory_regression/warning",
        "plan_exceeded/info",
        "plan_exceeded/warning",
    } <= set(keys)


def test_every_shipped_rule_speaks_both_languages_and_says_what_to_do() -> None:
    for rule in read_rules(ROOT / "alerts.yaml").rules.rules:
        english, chinese = rule.texts["en"], rule.texts["zh"]
        assert english.summary != chinese.summary
        assert english.description != chinese.description
        assert len(english.advice) == len(chinese.advice) > 0


def test_the_package_ships_the_very_file_of_the_repository() -> None:
    assert (ROOT / "backend/oomwatch/alerts.yaml").resolve() == (ROOT / "alerts.yaml").resolve()


def test_a_text_given_once_serves_both_languages() -> None:
    (rule,) = parse_rules(ENTRY).rules.rules
    assert rule.texts["en"].summary == rule.texts["zh"].summary == "{node} {gpu} {value}"


def test_all_mistakes_are_told_at_once_with_their_places() -> None:
    text = """rules:
  - alert: a
    severity: warn
    for: 5x
    when: {kind: threshold, metric: gpu_usd, above: 85%}
    summary: "{nod}"
  - alert: b
    when: {kind: treshold}
    fro: 3s
    summary: {en: "x", de: y}
overides: []
overrides:
  - {alert: zz, match: {}, set: {}}
notify: {channels: [{kind: slak, name: x}]}
"""
    told = mistakes(text)
    assert [one.split(" ")[0] for one in told] == [
        "3:15",
        "4:10",
        "5:11",
        "8:18",
        "9:5",
        "10:24",
        "11:1",
        "13:13",
        "14:28",
    ]
    assert told[0] == '3:15 expected one of info, warning, critical, got "warn"'
    assert "did you mean threshold?" in told[3]
    assert told[4] == '9:5 unknown key "fro"; did you mean for?'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "1:1 the file is empty"),
        ("[]", "1:1 expected the sections rules, overrides and notify"),
        ("notify: {}", "1:1 there are no rules: give a list under rules:"),
        ("rules: {}", "1:8 rules must be a list"),
        ("rules: [3]", '1:9 expected a mapping (name: value), got "3"'),
        ("rules:\n  - [", "2:6 this is no YAML: expected the node content, but found '<stream end>'"),
    ],
)
def test_a_file_of_the_wrong_shape_is_told_so(text: str, told: str) -> None:
    assert told in mistakes(text)


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("{kind: threshold, metric: gpu_used_ratio}", "give one of above and below"),
        ("{kind: rising, metric: gpu_used_ratio, above: 1}", "keeps no window to look for a rise in"),
        ("{kind: jump, metric: gpu_used_ratio, increase: 2}", "has no value for each step"),
        ("{kind: jump, metric: rollout_seconds, increase: -1}", "increase must be more than 0"),
        ("{kind: rate, of: reshard_cycles, above_per_minute: 1, window: 0s}", "window must be longer than 0s"),
        ("{kind: rising, metric: torch_reserved_ratio, above: 1, window: 7h}", "at most 6h"),
        ("{kind: threshold, metric: gpu_used_ratio, above: 85}", "above: 85 is no share; write 85% or 0.85"),
        ("{kind: threshold, metric: gpu_used_ratio, above: 70GiB}", "is no share"),
        ("{kind: threshold, metric: gpu_used_bytes, below: -1}", "below: -1 is below zero"),
        ("{kind: threshold, metric: gpu_used_bytes, above: .nan}", "is no quantity"),
        ("{kind: event, of: [fire]}", 'unknown kind of event "fire"; known are device_oom'),
        ("{kind: event, of: []}", "of must name at least one kind of event"),
        ("{kind: worst_case, steps: 3}", "steps must be from 8 to 40"),
        ("{kind: residue, by: 100MiB}", "by must be at least 1GiB"),
        ("{kind: retries, in_steps: 4, of_steps: 3}", "in_steps must be at least 1 and at most of_steps"),
        ("{kind: fragmentation, above: 15}", "above is a share of the card; write for example 15%"),
        ("{kind: imbalance, steps: 0}", "steps must be from 1 to 30"),
        ("{kind: lengths, by: 0}", "by must be more than 0"),
        ("{kind: regression, of_card: 20}", "of_card is a share of the card"),
        ("{kind: regression, faktor: 2}", 'unknown key "faktor"'),
        ("{metric: gpu_used_ratio}", '"kind" is missing; it is one of threshold, rising, jump, rate, event'),
        ("[]", "when has no condition"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused_with_the_reason(condition: str, told: str) -> None:
    assert told in "\n".join(mistakes(f"rules:\n  - alert: a\n    summary: s\n    when: {condition}\n"))


def test_a_text_may_mention_only_what_its_condition_knows() -> None:
    (told,) = mistakes(ENTRY.replace("{value}", "{baseline_seconds}"))
    assert told.startswith("4:14 {baseline_seconds} is not known here; known are")
    assert "used_bytes" in told


def test_the_same_alert_may_stand_twice_only_with_different_severities() -> None:
    second = ENTRY.split("\n", 1)[1]
    assert mistakes(ENTRY + second) == ["5:5 full (warning) is defined twice"]
    both = ENTRY + second.replace("    when", "    severity: critical\n    when")
    assert [rule.severity for rule in parse_rules(both).rules.rules] == ["warning", "critical"]


def test_an_override_changes_what_it_names_and_keeps_the_rest() -> None:
    text = ENTRY + 'overrides:\n  - {alert: full, match: {node: "a*"}, set: {when: {above: 99%}, for: 2m}}\n'
    rules = parse_rules(text).rules
    (rule,) = rules.rules
    special = rules.effective(rule, {"node": "a1", "gpu": "0"})
    assert special.for_seconds == 120
    assert special.when[0].judge != rule.when[0].judge
    assert special.texts == rule.texts
    assert rules.effective(rule, {"node": "b1"}) is rule


def test_an_override_may_not_change_which_rule_it_means() -> None:
    text = ENTRY + "overrides:\n  - {alert: full, match: {}, set: {severity: critical}}\n"
    assert "set may not change alert or severity" in "\n".join(mistakes(text))


def test_a_mistake_in_an_override_has_the_place_of_the_override() -> None:
    text = ENTRY + "overrides:\n  - {alert: full, match: {}, set: {for: never}}\n"
    (told,) = mistakes(text)
    assert told.startswith('6:41 "never" is no duration')


def test_a_key_given_twice_is_a_mistake() -> None:
    assert '5:5 "alert" is given twice' in mistakes(ENTRY + "    alert: other\n")


def test_a_missing_file_is_told_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(RuleFileError, match=r"none\.yaml:1:1: cannot be read"):
        read_rules(tmp_path / "none.yaml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "alerts.yaml"
    path.write_bytes(b"\xff\xfe\x00rules")
    with pytest.raises(RuleFileError, match="cannot be read"):
        read_rules(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[a]: b", "1:1 a key must be a plain word, got a list"),
        ("? [a, b]\n: c\n", "1:3 a key must be a plain word, got a list"),
        ("rules:\n  - {a: 1}: b\n", "2:5 a key must be a plain word, got a mapping"),
        (ENTRY + "    for: {? [x] : 1}\n", "5:13 a key must be a plain word, got a list"),
        ("rules: " + "[" * 20_000, "1:37 this is nested more than 30 levels deep"),
        ("".join(f"{'  ' * n}- \n" for n in range(400)), "this is nested more than 30 levels deep"),
        ("rules: &a [*a]", "1:8 this is nested more than 30 levels deep"),
        ("a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n"
         + "".join(f"{name}: &{name} [{', '.join([f'*{before}'] * 8)}]\n" for before, name in pairwise("abcdefgh")),
         "1:1 this is too large: more than 20000 values, aliases written out"),
        (ENTRY + "    severity: [a]\n", "5:15 expected one of info, warning, critical, got a list"),
        ("rules: [{when: {kind: [a]}, alert: a, summary: s}]", "1:23 kind must be one of threshold"),
        (ENTRY + "    for: !!timestamp x\n", "5:10 cannot be read"),
        (ENTRY + "    for: !!int ''\n", "5:10 cannot be read"),
        (ENTRY + "    enabled: !!bool 7\n", "5:14 cannot be read"),
        (ENTRY + "overrides:\n  - {alert: [full], match: {}, set: {}}\n", '6:13 there is no rule "" to override'),
        ("rules:\n  - \x00", "2:5 this is no YAML: special characters are not allowed"),
    ],
)  # fmt: skip
def test_odd_yaml_is_a_mistake_with_its_place(text: str, told: str) -> None:
    assert told in "\n".join(mistakes(text))


def test_an_alias_may_stand_for_what_is_written_once() -> None:
    text = ENTRY.replace("above: 85%}", "above: &limit 85%}") + ENTRY.split("\n", 1)[1].replace(
        "full", "fuller"
    ).replace("above: 85%", "above: *limit")
    first, second = parse_rules(text).rules.rules
    assert first.when == second.when


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/"])
def test_what_is_no_regular_file_is_not_read(path: str) -> None:
    with pytest.raises(RuleFileError, match="1:1: cannot be read: this is no regular file"):
        read_rules(Path(path))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "alerts.yaml"
    path.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(RuleFileError, match="too large to be a rule file"):
        read_rules(path)


NODES = st.recursive(
    st.sampled_from(["a", "85%", "rules", "~", "1", "*x", "&x b", "!!int ''", "<<", "''", "2001-02-30"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(inner, inner), max_size=3).map(
            lambda pairs: "{" + ", ".join(f"? {key} : {value}" for key, value in pairs) + "}"
        )
    ),
    max_leaves=8,
)
PLACES = ("rules: {}", "rules: [{}]", "overrides: [{}]", "notify: {}", "notify: {{channels: [{}]}}",
          "rules: [{{alert: a, summary: s, when: {}}}]", "rules: [{{alert: {}, severity: {}, summary: {}, for: {}}}]",
          "rules: []\noverrides: [{{alert: {}, match: {}, set: {}}}]", "{}: {}")  # fmt: skip


@given(st.sampled_from(PLACES), st.lists(NODES, min_size=4, max_size=4))
def test_any_yaml_at_any_place_gives_rules_or_mistakes_and_nothing_else(place: str, nodes: list[str]) -> None:
    try:
        parse_rules(place.format(*nodes))
    except RuleFileError as error:
        assert error.mistakes  # noqa: PT017 - either outcome is right; a bare one is not


@given(st.text(max_size=200))
def test_any_text_gives_rules_or_mistakes_and_nothing_else(text: str) -> None:
    try:
        parse_rules(text)
    except RuleFileError as error:
        assert error.mistakes  # noqa: PT017 - either outcome is right; a bare one is not
