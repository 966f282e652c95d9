"""Which rules are judged on which news, and what a defect of one of them costs."""

from tests.core.story import CARD_BYTES, Story, rules_of, shipped

from oomwatch import wire
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.engine import Engine
from oomwatch.core.fleet import Fleet
from oomwatch.core.lives import RunNews
from oomwatch.core.rule import Override, Rule, RuleSet
from oomwatch.core.subject import Channel, News, Scope, Subject
from oomwatch.core.verdict import INACTIVE, Verdict

FULL = rules_of("    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}\n").rules


class Listener(Kind, frozen=True, kw_only=True):
    """A condition that remembers what it was asked."""

    asked: list[tuple[float, Subject]]
    scopes: tuple[Scope, ...] = ("gpu",)
    hears: tuple[News, ...] = ("events",)
    over_when_run: RunNews | None = None
    fails: bool = False
    predicts: Channel | None = None

    def judge(self, _fleet: Fleet, subject: Subject, now: float) -> Verdict:
        self.asked.append((now, subject))
        if self.fails:
            raise ZeroDivisionError
        return INACTIVE


def listening(*hears: News, fails: bool = False) -> tuple[Listener, Rule]:
    listener = Listener(asked=[], hears=hears, fails=fails)
    return listener, Rule(alert="listener", severity="info", when=(listener,))  # type: ignore[arg-type]


def times(listener: Listener) -> list[float]:
    return [at for at, _ in listener.asked]


def tell(story: Story) -> None:
    """At 1 s a reading, at 2 s one with torch's figures, at 3 s an event; then two seconds of nothing."""
    story.now = 1.0
    story.used(10)
    story.now = 2.0
    story.sample(wire.GpuSample(gpu="0", used_bytes=1), torch=(wire.TorchSample(pid=1, gpu="0", reserved_bytes=1),))
    story.now = 3.0
    story.event(wire.TorchMemory(reserved_bytes=1, device_total_bytes=CARD_BYTES, gpu="0"))
    story.engine.advance(3.0)
    story.wait(2)


def test_a_rule_is_judged_on_the_news_that_it_hears_and_on_the_hello() -> None:
    expected: dict[News, list[float]] = {
        "readings": [0.0, 1.0, 2.0],
        "torch": [0.0, 2.0],
        "events": [0.0, 3.0],
    }
    for news, at in expected.items():
        listener, rule = listening(news)
        tell(Story((rule,)))
        assert times(listener) == at, news


def test_a_rule_that_silence_makes_true_is_judged_every_second() -> None:
    listener = Listener(asked=[], scopes=("node",), hears=("time",))
    tell(Story((Rule(alert="listener", severity="info", when=(listener,)),)))  # type: ignore[arg-type]
    assert times(listener) == [0.0, 4.0, 5.0]


def test_other_rules_judge_the_next_reading_of_a_node_whatever_they_hear() -> None:
    """They were not there when the event came that they would have heard."""
    story = Story(FULL)
    listener, rule = listening("events")
    story.engine.replace_rules(RuleSet(rules=(rule,)), 0.0)
    tell(story)
    assert times(listener) == [1.0, 3.0]


def test_an_override_hears_what_its_own_condition_hears() -> None:
    listener, rule = listening("readings")
    deaf, base = listening()
    story = Story(RuleSet(rules=(base,), overrides=(Override(rule=rule, node="n"),)))
    tell(story)
    assert times(listener) == [0.0, 1.0, 2.0]
    assert times(deaf) == []


def test_a_rule_with_a_defect_takes_no_other_along_and_is_reported() -> None:
    _, broken = listening("readings", fails=True)
    story = Story((broken, *FULL))
    story.used(79)
    assert story.states == ["firing"]
    (on_hello, on_sample) = story.engine.defects
    assert (on_sample.rule, on_sample.subject) == ("listener/info", Subject("gpu", "n", "0"))
    assert isinstance(on_hello.error, ZeroDivisionError)


def test_what_each_rule_costs_is_counted_by_a_stopwatch_that_is_lent() -> None:
    ticks = iter(range(1000))
    rules = shipped("gpu_memory_high")
    story = Story(rules)
    story.engine = Engine(rules, stopwatch=lambda: float(next(ticks)))
    story.hello("n")
    greeted = story.engine.spent.seconds["gpu_memory_high/warning"]
    story.used(40.0)
    assert story.engine.spent.seconds == {"gpu_memory_high/warning": greeted + 1}


def test_without_a_stopwatch_nothing_is_counted() -> None:
    assert Story(shipped("gpu_memory_high")).used(79.0).engine.spent.seconds == {}
