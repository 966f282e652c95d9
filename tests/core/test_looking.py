"""Whoever looks at a rule changes nothing: neither what is told afterwards, nor what is known.

Every kind of condition is the last one of a rule whose others come and go, so that the judge does not always ask it.
"""

import pickle  # only to compare: whatever changed would be in the bytes
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import pytest
from tests.core.host_story import HostStory
from tests.core.plan_story import ABOVE, AS_PLANNED, configured
from tests.core.step_story import Told, configure, tell
from tests.core.story import Story, rules_of

from oomwatch import wire
from oomwatch.core.conditions import Condition
from oomwatch.core.engine import Engine
from oomwatch.core.watched import watched

STEPS, WORSE_STEPS = 75, 36  # it gets worse, and then it is over
MASK_STEPS = 12  # so often something else is told, which is what the judge finds first for a while
OTHERS = """    keep_firing_for: 5s
    when:
      - {kind: event, of: [gpu_lost], within: 100s}
      - {kind: rate, of: reshard_cycles, above_per_minute: 0, window: 100s}
      - """
PLACE = 2  # of the kind, in `when`
CARD = "127.0.0.1:8000"
CAPPED: dict[str, wire.ConfigValue] = {
    "data__max_response_length": 4096,
    "data__train_batch_size": 64,
    "trainer__nnodes": 1,
    "trainer__n_gpus_per_node": 1,
    "actor_rollout_ref__rollout__n": 8,
    "actor_rollout_ref__actor__ppo_micro_batch_size_per_gpu": 8,
}


class Looked(Engine):
    """An engine whose rules somebody looks at after each call, and between the seconds of its grid."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.seen: set[str] = set()  # states in which the kind was seen
        self.changed: list[float] = []  # when a look left a trace

    def observe(self, message: wire.AgentMessage, node: str, now: float) -> list[wire.Transition]:
        told = super().observe(message, node, now)
        self.look(now + 0.3)
        return told

    def advance(self, now: float) -> list[wire.Transition]:
        told = super().advance(now)
        self.look(now + 0.6)
        return told

    def look(self, now: float) -> None:
        (rule,) = self.rules.rules
        watched(self.fleet, self.rules, rule, now)
        kind = rule.when[PLACE]
        subjects = [subject for scope in kind.scopes for subject in self.fleet.subjects(scope)]
        self.seen |= {kind.judge(self.fleet, subject, now).state for subject in subjects}


class Wary(Looked):
    """It holds what is known before some looks against what is known after them."""

    count = 0

    def look(self, now: float) -> None:
        self.count += 1
        if self.count % 101:
            return
        for node in self.fleet.nodes.values():
            for gpu in node.gpus.values():
                _ = gpu.blocks  # a look has gathered readings put in, of which nothing follows: test_gpu_windows.py
        before = pickle.dumps(self.fleet)
        super().look(now)
        if pickle.dumps(self.fleet) != before:
            self.changed.append(now)


class Kind(NamedTuple):
    """A kind of condition, and a story in which it comes true and ends: what is told in each step."""

    condition: str
    step: Callable[[Story, int], object]
    on_host: bool = False


def of_steps(worse: Callable[[int], Told], calm: Told, gpus: int = 1) -> Callable[[Story, int], object]:
    def step(story: Story, number: int) -> None:
        tell(story, number, worse(number) if number <= WORSE_STEPS else calm, gpus=gpus)

    return step


def lengthening(number: int) -> Told:
    mean = 800.0 + 30 * (number * 7 % 11)
    return Told(old_log_prob=15.0, update_actor=20.0 + 24 * mean / 1000, length_mean=mean, length_max=4096.0,
                clip_ratio=0.01)  # fmt: skip


def restarting(story: Story, number: int) -> None:
    """It goes well, is started again with more memory, and again with less."""
    start, of_start = divmod(number - 1, 25)
    if of_start == 0:
        configure(story, ref__offload=start != 1)
    tell(story, of_start + 1, Told(old_log_prob=27.0 if start == 1 else 7.9))


def beyond_its_plan(story: Story, number: int) -> None:
    if number == 1:
        configured(story)
    tell(story, number, ABOVE if number <= WORSE_STEPS else AS_PLANNED)


def jumping(story: Story, number: int) -> None:
    story.wait(18).step(number, rollout_seconds=200.0 if number % 9 == 8 else 30.0)


def failing(story: Story, number: int) -> None:
    if number in (5, 20):
        story.event(wire.DeviceOom(error="OutOfMemoryError", gpu="0"))
    tell(story, number, Told())


def switching(story: Story, number: int) -> None:
    for _ in range(3):
        story.wait(6)
        if number % 8 < 4:
            story.event(wire.Reshard(marker="resume_kv_cache"), pid=7)
    story.step(number)


def queueing(story: Story, number: int) -> None:
    full = number % 9 < 5
    page = wire.EngineSample(engine="vllm", address=CARD, kv_used_ratio=0.99 if full else 0.3, requests_running=200,
                             requests_waiting=300, preemptions_total=7 * number)  # fmt: skip
    for _ in range(3):
        story.wait(6)
        story._observe(wire.Sample(seq=round(story.now), at=story.now, engines=(page,)), "n")
    story.step(number)


def filling(story: Story, number: int) -> None:
    assert isinstance(story, HostStory)
    level = min(number, WORSE_STEPS)
    for _ in range(6):
        story.read(700 + 7.0 * level, disk=1500 + 11.0 * level, shm=5)
    story.step(number, step_seconds=60.0)


KINDS = {
    "threshold": Kind("{kind: threshold, metric: gpu_used_ratio, above: 85%}",
                      of_steps(lambda _: Told(update_actor=75.0), Told())),
    "rising": Kind("{kind: rising, metric: torch_reserved_ratio, above: 60%, by: 0.5%, window: 10m}",
                   of_steps(lambda step: Told(update_actor=40.0 + step, slack=1.0), Told(slack=1.0))),
    "jump": Kind("{kind: jump, metric: rollout_seconds, increase: 200%}", jumping),
    "rate": Kind("{kind: rate, of: reshard_cycles, above_per_minute: 3, window: 1m}", switching),
    "event": Kind("{kind: event, of: [device_oom], within: 2m}", failing),
    "forecast": Kind("{kind: forecast}", of_steps(lambda step: Told(update_actor=40.0 + step), Told())),
    "host_forecast": Kind("{kind: host_forecast, until: 95%, within: 60m}", filling, on_host=True),
    "disk_forecast": Kind("{kind: disk_forecast, of: [spill_disk], within: 60m}", filling, on_host=True),
    "kv_pressure": Kind("{kind: kv_pressure, above: 95%}", queueing),
    "worst_case": Kind("{kind: worst_case}", of_steps(lengthening, Told(length_mean=800.0, length_max=900.0))),
    "residue": Kind("{kind: residue}", of_steps(lambda step: Told(residue=4.1 if step < 20 else 15.0),
                                                Told(residue=4.1))),
    "retries": Kind("{kind: retries}", of_steps(lambda step: Told(update_actor=76.0, retries_total=max(0, step - 8)),
                                                Told(update_actor=76.0, retries_total=WORSE_STEPS - 8))),
    "fragmentation": Kind("{kind: fragmentation}", of_steps(lambda step: Told(update_actor=70.0, slack=9 + 0.2 * step),
                                                            Told(update_actor=70.0, slack=1.0))),
    "imbalance": Kind("{kind: imbalance}", of_steps(lambda _: Told(more={"1": 16.0}), Told(), gpus=3)),
    "lengths": Kind("{kind: lengths}", of_steps(lambda step: Told(length_mean=800.0 + 10 * step, clip_ratio=0.0),
                                                Told(length_mean=800.0, clip_ratio=0.0))),
    "regression": Kind("{kind: regression}", restarting),
    "plan": Kind("{kind: plan}", beyond_its_plan),
}  # fmt: skip


def told_by(kind: Kind, engine: type[Engine]) -> Story:
    rules = rules_of(OTHERS + kind.condition)
    story = HostStory(rules, engine=engine) if kind.on_host else Story(rules, gpus=3, run="r", engine=engine)
    configure(story, **CAPPED)
    for step in range(1, STEPS + 1):
        if step % MASK_STEPS == 0:
            story.event(wire.GpuLost(gpu=None if kind.on_host else "0"))
            story.event(wire.Reshard(marker="resume_kv_cache"), pid=7)
        kind.step(story, step)
    return story


def test_every_kind_of_condition_has_its_story() -> None:
    assert set(KINDS) == {kind.__struct_config__.tag for kind in get_args(Condition)}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_same_is_told_whether_somebody_looks_or_not(kind: Kind) -> None:
    looked, unseen = told_by(kind, Looked), told_by(kind, Engine)
    assert isinstance(looked.engine, Looked)
    assert looked.engine.seen >= {"active", "inactive"}, "the kind never came true, or never ended"
    assert len(unseen.heard) > 1
    assert looked.heard == unseen.heard


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_look_leaves_no_trace(kind: Kind) -> None:
    story = told_by(kind, Wary)
    assert isinstance(story.engine, Wary)
    assert story.engine.count > STEPS
    assert story.engine.changed == []
