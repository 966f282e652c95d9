"""Transitions in words."""

import importlib.resources
import re
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pytest
from tests.core.story import GIB, SHIPPED, Story, shipped

from oomwatch import wire
from oomwatch.catalogue import AFTER_ONE, entries, say
from oomwatch.core.hostmemory import HostUse
from oomwatch.core.rule import RuleSet
from oomwatch.rulefile import RuleFileError, parse_rules
from oomwatch.wording import put_into_words, rule_view


def words(transition: wire.Transition, language: wire.Language = "en", rules: RuleSet = SHIPPED) -> wire.AlertText:
    return put_into_words(transition, rules, simulated=False).texts[language]


def test_a_high_gpu_is_said_with_its_figures() -> None:
    (firing,) = Story(shipped("gpu_memory_high")).wait(40, lambda s: s.used(75)).heard
    assert words(firing).summary == "GPU 0 of n: 94 % of its memory is in use (75.0 GiB of 80.0 GiB)"
    assert words(firing, "zh").summary == "n 的 GPU 0：显存已用 94 %（75.0 GiB / 80.0 GiB）"
    assert "above 85 % for 30 s in total" in words(firing).description


def test_what_waits_for_its_hold_time_is_not_said_to_have_held_for_it() -> None:
    (firing,) = Story(shipped("gpu_memory_high")).wait(40, lambda s: s.used(75)).heard
    pending = msgspec.structs.replace(firing, state="pending")
    assert words(pending).summary == words(firing).summary
    assert words(pending).description == (
        "It has not fired yet: only the moments in which this holds count, and together they must come to 30 s."
    )
    assert words(pending, "zh").description == "尚未触发：只计条件成立的时间，累计达到 30 秒后才会触发。"
    reserved = msgspec.structs.replace(pending, alert="torch_reserved_high", severity="critical")
    assert words(reserved).description.startswith("The peak rose by")


def test_a_clause_whose_number_is_not_known_is_left_out() -> None:
    (known,) = (
        Story(shipped("out_of_memory"))
        .event(wire.DeviceOom(error="torch.OutOfMemoryError", gpu="0", phase="rollout", tried_bytes=2 * GIB), pid=7)
        .heard
    )
    assert words(known).summary == "Out of memory on GPU 0 of n, pid 7, in rollout"
    (bare,) = Story(shipped("out_of_memory")).event(wire.HostOom(reporter="kernel"), run=None).heard
    assert words(bare).summary == "Out of memory on n"
    assert "{" not in words(bare).description
    assert "not known" not in words(bare).description


def test_what_is_one_of_a_list_is_said_in_the_readers_language() -> None:
    story = Story(shipped("out_of_memory"))
    (firing,) = story.event(wire.DeviceOom(error="OutOfMemoryError", gpu="0", phase="update_actor"), pid=7).heard
    assert words(firing).summary == "Out of memory on GPU 0 of n, pid 7, in actor update"
    assert words(firing, "zh").summary == "n 的 GPU 0 发生 OOM（actor 更新），pid 7"


@pytest.mark.parametrize(("limited_by", "zh"), [("machine", "整机"), ("container", "容器")])
def test_what_limits_a_hosts_memory_is_said_in_the_readers_language(limited_by: str, zh: str) -> None:
    firing = wire.Transition(
        id="x",
        alert="host_memory_high",
        severity="warning",
        state="firing",
        at=1,
        started_at=1,
        labels={"node": "n"},
        value=0.9,
        unit="ratio",
        facts={"limited_by": limited_by},
    )
    assert words(firing).summary.startswith(f"n: 90 % of the {limited_by}'s host memory")
    assert words(firing, "zh").summary.startswith(f"n：主机内存（{zh}）已用 90 %")


def test_a_word_that_the_catalogue_lacks_is_said_as_it_is() -> None:
    story = Story(shipped("out_of_memory"))
    (firing,) = story.event(wire.DeviceOom(error="OutOfMemoryError", gpu="0", phase="distil"), pid=7).heard
    assert words(firing, "zh").summary.startswith("n 的 GPU 0 发生 OOM（distil）")


def test_every_phase_and_each_limit_of_a_host_has_its_words() -> None:
    limits = get_args(get_type_hints(HostUse)["limited_by"])
    assert {f"phase.{phase}" for phase in wire.PHASES} | {f"fact.{limit}" for limit in limits} <= set(entries())


def test_a_phase_stands_in_brackets_in_chinese_where_any_of_its_words_reads_well() -> None:
    """Some are Chinese and some Latin, which want a space beside them; the whole step is no phase."""
    texts = [rule.texts["zh"] for rule in SHIPPED.rules]
    told = [sentence for text in texts for sentence in (text.summary, text.description, *text.advice)]
    assert {found for sentence in told for found in re.findall(r".\{phase\}.", sentence)} == {"（{phase}）"}


def test_every_shipped_rule_fills_all_it_can_and_leaves_no_brace() -> None:
    bare = wire.Transition(id="x", alert="", severity="info", state="firing", at=1, started_at=1, labels={"node": "n"})
    for rule in SHIPPED.rules:
        transition = msgspec.structs.replace(bare, alert=rule.alert, severity=rule.severity)
        for language in wire.LANGUAGES:
            text = words(transition, language)
            assert not set("{}[]") & set(text.summary + text.description + "".join(text.advice))


def test_an_alert_whose_rule_is_gone_says_its_name() -> None:
    gone = wire.Transition(id="x", alert="old", severity="info", state="firing", at=1, started_at=1, labels={})
    assert words(gone).summary == "old"


def test_a_value_that_looks_like_a_placeholder_stays_as_it_is() -> None:
    rules = parse_rules(
        'rules: [{alert: a, when: {kind: event, of: [host_oom]}, summary: "{process} on {node}"}]'
    ).rules
    (firing,) = Story(rules).event(wire.HostOom(reporter="kernel", process="{node}{gpu}"), run=None).heard
    assert words(firing, rules=rules).summary == "{node}{gpu} on n"


def test_an_override_that_changes_the_text_is_heard() -> None:
    rules = parse_rules(
        "rules: [{alert: a, when: {kind: threshold, metric: gpu_used_ratio, above: 1%}, summary: usual}]\n"
        "overrides: [{alert: a, match: {node: n}, set: {summary: special}}]"
    ).rules
    (firing,) = Story(rules).used(40).heard
    assert words(firing, rules=rules).summary == "special"


def test_a_rule_is_shown_with_its_parameters() -> None:
    view = rule_view(shipped("reshard_storm").rules[0])
    assert [msgspec.json.decode(condition)["kind"] for condition in view.when] == ["rate", "threshold"]
    assert wire.encode(view)


def test_a_clause_that_is_left_out_leaves_no_gap_behind() -> None:
    text = "{en: 'One. [Two {tried_bytes}.] Three.', zh: '一。 [二 {tried_bytes}。] 三。'}"
    rules = parse_rules(f"rules: [{{alert: x, when: {{kind: event, of: [host_oom]}}, summary: {text}}}]").rules
    (firing,) = Story(rules).event(wire.HostOom(reporter="kernel"), run=None).heard
    assert words(firing, "en", rules).summary == "One. Three."
    assert words(firing, "zh", rules).summary == "一。三。"


@pytest.mark.parametrize(
    ("sentence", "steps", "said"),
    [
        ("full in {value} ({pid} steps)", 1, "full in 1 (1 step)"),
        ("full in {value} ({pid} steps)", 2, "full in 1 (2 steps)"),
        ("{pid} earlier steps", 1, "1 earlier step"),
        ("{pid} processes on {pid} GPUs are in 1 steps", 1, "1 process on 1 GPU are in 1 steps"),
        ("in {pid} of the last 3 steps", 1, "in 1 of the last 3 steps"),
        ("{pid} stepson", 1, "1 stepson"),
    ],
)
def test_nouns_agree_with_the_number_before_them(sentence: str, steps: int, said: str) -> None:
    rules = parse_rules(f'rules: [{{alert: a, when: {{kind: event, of: [device_oom]}}, summary: "{sentence}"}}]').rules
    (firing,) = Story(rules).event(wire.DeviceOom(error="e"), run="r").heard
    told = msgspec.structs.replace(firing, value=1.0, unit="count", facts={"pid": steps})
    assert words(told, "en", rules).summary == said


def test_the_sentences_of_the_catalogue_agree_too_and_in_english_alone() -> None:
    assert "in 1 of the last 3 steps" in say("evidence.retries", "en", retry_steps=1)
    assert "over 1 step" in say("evidence.floors_rise", "en", floor_rise_bytes="1 GiB", steps=1)
    assert "over 11 steps" in say("evidence.floors_rise", "en", floor_rise_bytes="1 GiB", steps=11)
    assert "1 步" in say("evidence.floors_rise", "zh", floor_rise_bytes="1 GiB", steps=1)


def test_the_page_knows_the_same_nouns() -> None:
    page = Path(str(importlib.resources.files("oomwatch_frontend"))) / "js" / "i18n.js"
    text = page.read_text(encoding="utf-8")
    assert [one for one in AFTER_ONE.values() if not re.search(rf"\b{one}\b", text)] == []


def forecast(**facts: wire.Fact) -> wire.Transition:
    return wire.Transition(
        id="x",
        alert="memory_forecast",
        severity="critical",
        state="firing",
        at=1,
        started_at=1,
        labels={"node": "n", "gpu": "0"},
        value=float(facts.get("eta_seconds", 0.0)),
        unit="seconds",
        facts=facts,
    )


@pytest.mark.parametrize(
    ("facts", "english", "chinese"),
    [
        ({"eta_seconds": 840.0, "eta_steps": 6}, "in about 14 min (6 steps)", "约 14 分钟（6 步）后"),
        ({"eta_seconds": 840.0, "eta_steps": 1}, "in about 14 min (1 step)", "约 14 分钟（1 步）后"),
        ({"eta_seconds": 100.0, "eta_steps": 0}, "in about 1 min 40 s", "约 1 分钟 40 秒后"),
        ({"eta_steps": 6}, "in about 6 steps", "约 6 步后"),
        ({"eta_steps": 0}, "at any moment now", "随时会"),
        ({"eta_seconds": 0.0, "eta_steps": 0}, "at any moment now", "随时会"),
        ({"eta_seconds": 9.9, "eta_steps": 3}, "at any moment now", "随时会"),
    ],
)
def test_a_forecast_says_how_soon_it_comes_true(facts: dict[str, wire.Fact], english: str, chinese: str) -> None:
    assert words(forecast(**facts)).summary == f"GPU 0 of n will be full {english}"
    assert words(forecast(**facts), "zh").summary == f"n 的 GPU 0：显存{chinese}耗尽"


@pytest.mark.parametrize("language", wire.LANGUAGES)
@pytest.mark.parametrize("alert", ["memory_forecast", "host_memory_forecast", "disk_forecast"])
def test_a_forecast_that_has_come_due_tells_no_noughts(alert: str, language: wire.Language) -> None:
    facts: dict[str, wire.Fact] = dict.fromkeys(
        ("eta_seconds", "eta_low_seconds", "eta_high_seconds", "eta_steps"), 0.0
    )
    facts |= {"limited_by": "machine", "until_ratio": 0.95, "path": "/data", "used_bytes": GIB, "limit_bytes": GIB}
    due = msgspec.structs.replace(forecast(**facts), alert=alert)
    said = words(due, language)
    assert say("figure.any_moment", language) in said.summary
    assert not re.search(r"\b0(\.0)? ?(s|steps|秒|步)\b|0 秒|0 步", said.summary + said.description)


def test_a_rule_of_ones_own_that_names_the_time_left_says_a_moment() -> None:
    rules = parse_rules(
        "rules: [{alert: soon, severity: critical, when: {kind: forecast}, "
        "summary: 'full in {value}[ ({eta_steps} steps)]', description: '{how_soon}'}]",
        "alerts.yaml",
    ).rules
    due = msgspec.structs.replace(forecast(eta_seconds=0.0, eta_steps=0), alert="soon")
    assert words(due, rules=rules).summary == "full in a moment"
    assert words(due, rules=rules).description == "at any moment now"


def test_how_soon_is_no_word_of_a_rule_that_foretells_nothing() -> None:
    written = "rules: [{alert: a, when: {kind: threshold, metric: gpu_used_ratio, above: 85%}, summary: '{how_soon}'}]"
    with pytest.raises(RuleFileError, match="how_soon"):
        parse_rules(written, "alerts.yaml")
