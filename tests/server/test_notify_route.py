"""The tree of routes: which channels an alert goes to, and how many messages a channel takes."""

import pytest

from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.rate import TokenBucket, parse_rate
from oomwatch.notify.route import Router, Target, Timing
from oomwatch.rulefile import RuleFileError, parse_rules

RULES = """\
rules: []
notify:
  group_wait: 1s
  channels:
    - {kind: slack, name: team, url_env: A, rate: 30/1m}
    - {kind: slack, name: pager, url_env: B}
    - {kind: slack, name: boss, url_env: C}
"""
TREE = """\
  repeat_interval: 1h
  route:
    channels: [team]
    group_interval: 10s
    escalate: {after: 1h, channels: [boss]}
    routes:
      - match: ['severity="critical"']
        channels: [pager]
        continue: true
        group_wait: 0s
        escalate: {after: 15m, channels: [boss]}
      - match: ['node=~"gpu-0.*"']
        group_by: [node]
        routes:
          - {match: [gpu=3], repeat_interval: 0s, escalate: {after: 0s, channels: []}}
      - match: [run=""]
        channels: []
"""


def config(route: str = "") -> NotifyConfig:
    return parse_rules(RULES + route).notify


def router(route: str = TREE) -> Router:
    return config(route).router()


def channels(labels: dict[str, str]) -> list[tuple[str, str, float | None]]:
    return [(one.channel, one.path, one.escalate_after) for one in router().targets(labels)]


def test_without_routes_everybody_is_told_everything() -> None:
    timing = Timing(1.0, 30.0, 4 * 3600.0)
    assert router("").targets({"severity": "info"}) == [
        Target(name, "", None, timing) for name in ("team", "pager", "boss")
    ]


def test_what_no_child_takes_stays_with_its_parent() -> None:
    assert channels({"run": "a", "node": "cpu-1"}) == [("team", "", None), ("boss", "", 3600.0)]


def test_a_route_that_continues_is_followed_by_its_sibling() -> None:
    told = channels({"severity": "critical", "run": "a", "node": "gpu-07"})
    assert told == [("pager", "0", None), ("team", "1", None), ("boss", "0", 900.0)]


def test_the_deepest_route_that_fits_takes_it_and_may_turn_off_what_it_would_inherit() -> None:
    assert channels({"run": "a", "node": "gpu-07", "gpu": "3"}) == [("team", "1/0", None)]


def test_a_route_may_send_to_nobody_but_inherits_who_is_told_later() -> None:
    assert channels({"node": "cpu-1"}) == [("boss", "2", 3600.0)]


def test_timings_and_groups_are_inherited() -> None:
    (target, _) = router().targets({"run": "a", "node": "gpu-07", "gpu": "1"})
    assert (target.timing, target.group_by) == (Timing(1.0, 10.0, 3600.0), ("node",))
    (deepest,) = router().targets({"run": "a", "node": "gpu-07", "gpu": "3"})
    assert (deepest.timing, deepest.group_by) == (Timing(1.0, 10.0, 0.0), ("node",))
    (first, *_) = router().targets({"severity": "critical", "run": "a"})
    assert first.timing == Timing(0.0, 10.0, 3600.0)


def test_a_channel_is_named_once_and_rather_at_once_than_later() -> None:
    tree = "  route: {channels: [boss, team, boss], escalate: {after: 1m, channels: [team, pager]}}\n"
    told = [(one.channel, one.escalate_after) for one in router(tree).targets({})]
    assert told == [("boss", None), ("team", None), ("pager", 60.0)]


@pytest.mark.parametrize(
    ("route", "mistake"),
    [
        ("  route: {channels: [team, nobody]}", '8:28: there is no channel "nobody"; there are team, pager, boss'),
        ("  route: {routes: [{escalate: {after: 1m, channels: [x]}}]}", '8:54: there is no channel "x"'),
        ("  route: {routes: [{match: ['severity']}]}", '8:29: "severity" is no matcher'),
        ("  route: {routes: [{match: ['cluster=a']}]}", '8:29: an alert has no label "cluster"'),
        ("  route: {routes: [{match: ['node=~\"(\"']}]}", "8:29: "),
        ("  route: {group_by: [run, job]}", '8:27: alerts have no label "job"'),
        ("  route: {match: [node=a]}", "8:18: the first route takes everything"),
        ("  route: {continue: true}", "8:21: the first route takes everything"),
        ("  route: {routes: [{escalate: {after: 0s, channels: [team]}}]}", "8:31: escalation needs a time"),
        ("  route: {routes: [{chanels: [team]}]}", '8:21: unknown key "chanels"; did you mean channels?'),
        ("  route: {routes: [{group_wait: soon}]}", "8:33: "),
    ],
)
def test_every_mistake_has_its_line_and_column(route: str, mistake: str) -> None:
    with pytest.raises(RuleFileError) as caught:
        parse_rules(RULES + route)
    assert str(caught.value).startswith(f"alerts.yaml:{mistake}")


@pytest.mark.parametrize("rate", ["30", "0/1m", "-1/1m", "1/0s", "1/soon", "x/1m", "½/1m"])
def test_a_rate_that_cannot_be_meant_is_refused(rate: str) -> None:
    with pytest.raises(ValueError, match=r"30/1m|no rate|no duration"):
        parse_rate(rate)


def test_a_rate_lets_through_a_burst_and_then_one_by_one() -> None:
    rate = config().channels[0].rate
    assert rate is not None
    assert (rate.messages, rate.seconds) == (30, 60.0)
    bucket = TokenBucket(parse_rate("2/10s"), 100.0)
    for _ in range(2):
        assert bucket.free_at(100.0) == 100.0
        bucket.take(100.0)
    assert bucket.free_at(100.0) == 105.0
    assert bucket.free_at(102.0) == 105.0
    bucket.take(105.0)
    assert bucket.free_at(105.0) == 110.0
    assert bucket.free_at(1000.0) == 1000.0


def test_without_a_rate_everything_goes_at_once() -> None:
    bucket = TokenBucket(None, 0.0)
    for _ in range(1000):
        bucket.take(0.0)
    assert bucket.free_at(0.0) == 0.0
