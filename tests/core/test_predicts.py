"""What a rule foretells is said by its condition, or by the rule itself."""

from typing import get_args

import pytest
from tests.core.story import SHIPPED, rules_of

from oomwatch.core.conditions import Condition

FULL = "    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}\n"


@pytest.mark.parametrize("kind", get_args(Condition), ids=lambda kind: kind.__name__)
def test_every_kind_of_condition_says_what_it_predicts_and_is_about(kind: type) -> None:
    for name in ("predicts", "topic"):
        assert hasattr(kind, name), f"give it the {name} that core/conditions/__init__.py describes"


def test_a_rule_predicts_what_its_condition_does() -> None:
    (rule,) = rules_of(FULL).rules
    assert rule.predicts == "device"


@pytest.mark.parametrize(("key", "expected"), [("host", "host"), ("nothing", None)])
def test_a_rule_may_say_so_itself(key: str, expected: str | None) -> None:
    (rule,) = rules_of(f"{FULL}    predicts: {key}\n").rules
    assert rule.predicts == expected


def test_what_has_happened_and_what_is_slow_predict_nothing() -> None:
    predicted = {rule.alert: rule.predicts for rule in SHIPPED.rules}
    nothing = {"out_of_memory", "agent_silent", "gpu_lost", "rollout_time_jump", "reshard_storm"}
    assert {alert for alert, channel in predicted.items() if channel is None} >= nothing
    assert (predicted["gpu_memory_high"], predicted["host_memory_high"]) == ("device", "host")
