"""What a rule sees now: the engine's own conditions, asked about every subject."""

import time
from pathlib import Path
from typing import get_args

from tests.core.story import Story, rules_of
from tests.server.house import hello, sample
from tests.server.running_server import AgentClient, serving, settings_in, until

from oomwatch.catalogue import entries
from oomwatch.core.conditions import Condition
from oomwatch.core.hostdisks import Disk
from oomwatch.core.notable import NOTABLE
from oomwatch.core.signals import SIGNALS
from oomwatch.core.watched import watched
from oomwatch.rulefile import parse_rules
from oomwatch.web.rulenow import RuleNow, rule_as_of

HIGH = rules_of("    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}")


def now_of(story: Story, limit: int = 10) -> RuleNow:
    rules = story.engine.rules
    (rule,) = rules.rules
    return rule_as_of(rule, watched(story.engine.fleet, rules, rule, story.now), story.now, limit)


def test_where_it_is_so_comes_first_then_what_is_nearest_to_the_limit() -> None:
    story = Story(HIGH, gpus=4)
    for gpu, gib in enumerate((20, 79, 60, 75)):
        story.used(gib, gpu=str(gpu))
    seen = now_of(story)
    assert [(one.labels["gpu"], one.state) for one in seen.subjects] == [
        ("1", "active"), ("3", "active"), ("2", "inactive"), ("0", "inactive"),
    ]  # fmt: skip
    assert [round(one.value or 0, 2) for one in seen.subjects] == [0.99, 0.94, 0.75, 0.25]
    assert {one.limit for one in seen.subjects} == {0.85}
    assert (seen.active, seen.inactive, seen.unknown, seen.off) == (2, 2, 0, 0)


def test_what_nothing_is_known_of_is_unknown_and_stands_last() -> None:
    seen = now_of(Story(HIGH, gpus=2).used(20, gpu="1"))
    assert [(one.labels["gpu"], one.state, one.value) for one in seen.subjects] == [
        ("1", "inactive", 0.25), ("0", "unknown", None),
    ]  # fmt: skip
    assert (seen.inactive, seen.unknown) == (1, 1)


def test_of_several_conditions_the_one_that_is_true_or_nearest_is_told() -> None:
    rules = rules_of(
        "    when:\n"
        "      - {kind: threshold, metric: gpu_used_ratio, above: 99%}\n"
        "      - {kind: threshold, metric: gpu_used_ratio, below: 10%}"
    )
    assert [(one.condition, one.state) for one in now_of(Story(rules).used(4)).subjects] == [(1, "active")]
    assert [(one.condition, one.state) for one in now_of(Story(rules).used(78)).subjects] == [(0, "inactive")]


def test_where_an_override_switches_it_off_it_says_so() -> None:
    rules = parse_rules(
        "rules: [{alert: a, when: {kind: threshold, metric: gpu_used_ratio, above: 85%}, summary: it}]\n"
        "overrides: [{alert: a, match: {node: n}, set: {enabled: false}}]"
    ).rules
    assert (now_of(Story(rules).used(79)).off, now_of(Story(rules).used(79)).active) == (1, 0)


def test_a_limit_cuts_the_list_and_not_the_counts() -> None:
    seen = now_of(Story(HIGH, gpus=3).used(20).used(20, gpu="1"), limit=1)
    assert (len(seen.subjects), seen.inactive, seen.unknown) == (1, 2, 1)


def test_for_every_signal_and_every_kind_it_can_be_said_what_is_missing() -> None:
    kinds = {str(kind.__struct_config__.tag) for kind in get_args(Condition)}
    of_signals = {"threshold", "rising", "jump", "rate"}
    keys = {f"rules.needs_{name}" for name in (*SIGNALS, "reshard_cycles", *(kinds - of_signals))}
    assert keys <= set(entries())
    assert {key for key in entries() if key.startswith("rules.needs_")} == keys


def test_every_kind_signal_and_event_that_a_rule_may_name_has_its_words() -> None:
    kinds = {str(kind.__struct_config__.tag) for kind in get_args(Condition)}
    sides = {"threshold_above", "threshold_more", "threshold_below", "plan_anywhere", "steady"}
    things = {*(str(body.__struct_config__.tag) for body in NOTABLE), *get_args(Disk)}
    for family, names in (("when", kinds - {"threshold"} | sides), ("signal", set(SIGNALS)), ("of", things)):
        prefix = f"rules.{family}_"
        assert {key.removeprefix(prefix) for key in entries() if key.startswith(prefix)} == names


def test_a_server_says_what_a_rule_sees_and_knows_no_other(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello("gpu-07", sent_at=time.time(), gpus=2))
        agent.say(sample(1, 79, time.time()))
        until("the alert", lambda: server.get("/api/v1/alerts?state=firing").json())
        now = server.get("/api/v1/rules/full/now?severity=warning").json()
        assert (now["alert"], now["active"], now["unknown"]) == ("full", 1, 1)
        assert now["subjects"][0]["labels"] == {"node": "gpu-07", "gpu": "0"}
        assert server.get("/api/v1/rules/full/now").json()["active"] == 1
        assert server.get("/api/v1/rules/full/now?severity=critical").status_code == 404
        refused = server.get("/api/v1/rules/none/now")
        assert (refused.status_code, refused.json()) == (404, {"error": 'there is no rule "none"'})
