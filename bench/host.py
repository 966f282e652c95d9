"""How often the forecast for host memory is wrong, how early it is right, and what it costs.

    python -m bench.host [--tuning]

Whole runs go through the engine by the shipped rules, with a reading every ten seconds. A made-up host is a sawtooth of
offloading, a level that wanders, checkpoints that spike, and caches that fill and level off; on half of them nearly all
memory is in use, and stays so. A failing one also leaks, 0.5 GiB an hour or more of 500 GiB, until Ray would kill at
95 %: steadily, in stairs, or faster and faster. Every fifth run prints no step lines. The seeds of --tuning were looked
at while the rule was made, those reported were not. Takes five minutes.
"""

import math
import random
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from bench._options import parser_of

from oomwatch import wire
from oomwatch.core.engine import Engine
from oomwatch.core.rule import RuleSet
from oomwatch.rulefile import read_rules

GIB = 2**30
ALERT = "host_memory_forecast"
RULES = read_rules(Path(__file__).resolve().parents[1] / "alerts.yaml").rules.rules
KILLED_AT = 0.95
READ_SECONDS = 10.0
SEEDS, TUNING_SEEDS = range(1000, 1200), range(250)
STEPS = 240
LEAKS = ("steady", "staircase", "accelerating")


class Host(NamedTuple):
    """One made-up run. Memory in GiB."""

    total: float
    limit: float | None  # of a container, of which all that is used is the run's
    step_seconds: float
    told: bool  # whether the run prints step lines
    level: float
    swing: float  # of the sawtooth
    noise: float
    wander: float
    spike: float
    spike_every: int
    cache: float  # that fills up in the first steps
    cache_steps: float
    leak_per_hour: float = 0.0
    leak: str = ""
    onset: int = 0

    @property
    def bound(self) -> float:
        return self.limit or self.total


class Outcome(NamedTuple):
    host: Host
    steps: int
    died: bool
    warned: int | None  # step of the warning that stood when it died
    wrong: int  # episodes before the leak, or in a run without

    @property
    def lead(self) -> int:
        """Steps from the warning, or from where the leak began, to the end."""
        return 0 if self.warned is None else self.steps - max(self.warned, self.host.onset)


def host_of(dice: random.Random, *, leaking: bool) -> Host:
    total = dice.choice((250.0, 500.0, 1000.0, 2000.0))
    limit = total * dice.uniform(0.4, 0.8) if dice.random() < 0.4 else None
    bound = limit or total
    step_seconds = dice.choice((20.0, 45.0, 90.0, 150.0, 300.0, 600.0))
    noise = bound * dice.uniform(0.0005, 0.006)
    host = Host(
        total=total,
        limit=limit,
        step_seconds=step_seconds,
        told=dice.random() < 0.8,
        level=0.0,
        swing=bound * dice.uniform(0.0, 0.2),
        noise=noise,
        wander=bound * dice.uniform(0.0, 0.006),
        spike=bound * dice.choice((0.0, 0.0, 0.04, 0.1)),
        spike_every=dice.choice((5, 10, 20, 50)),
        cache=bound * dice.choice((0.0, 0.05, 0.15)),
        cache_steps=dice.uniform(4, 40),
    )
    top = bound * (dice.uniform(0.88, 0.935) if dice.random() < 0.5 else dice.uniform(0.4, 0.8))
    rest = host.swing + host.cache + host.spike + 4 * host.noise + 3 * host.wander
    if not leaking:
        return host._replace(level=top - rest)
    onset = dice.randint(5, 80)
    rate = math.exp(dice.uniform(math.log(0.5), math.log(30.0))) * total / 500
    unsteady = host.noise + host.wander + 0.01 * host.swing
    room = max(min(bound * 0.5, rate * step_seconds * dice.randint(25, 150) / 3600), 6 * unsteady)
    return host._replace(
        level=KILLED_AT * bound - rest - room,
        leak_per_hour=max(rate, room / 150 / step_seconds * 3600),
        leak=dice.choice(LEAKS),
        onset=onset,
    )


def leaked(host: Host, step: float, into_hours: float) -> float:
    if host.leak == "staircase":
        return host.leak_per_hour * (into_hours // (8 * host.step_seconds / 3600)) * (8 * host.step_seconds / 3600)
    if host.leak == "accelerating":
        return host.leak_per_hour * into_hours * min(2.0, 0.5 + max(0.0, step - host.onset) / 60)
    return host.leak_per_hour * into_hours


def used(host: Host, dice: random.Random) -> Iterator[tuple[float, int, bool, float]]:
    """Time, step, whether that step is over, and memory in use, every ten seconds."""
    at, wander, onset_at = 0.0, 0.0, None
    for step in range(1, STEPS + (400 if host.leak else 0)):
        seconds = host.step_seconds * dice.uniform(0.93, 1.07)
        wander = wander * 0.97 + dice.gauss(0, host.wander * 0.24)
        swing = host.swing * dice.uniform(0.97, 1.0)
        end = at + seconds
        noise = dice.gauss(0, host.noise)
        if step == host.onset:
            onset_at = at
        while at < end:
            share = 1 - (end - at) / seconds
            value = host.level + wander + noise + dice.gauss(0, host.noise / 4)
            value += host.cache * (1 - math.exp(-step / host.cache_steps))
            value += swing if 0.1 < share < 0.6 else 0.3 * swing
            value += host.spike if share > 0.75 and step % host.spike_every == 0 else 0.0
            if host.leak and onset_at is not None:
                value += leaked(host, step, (at - onset_at) / 3600)
            at += READ_SECONDS
            yield at, step, at >= end, value


class Watch:
    """The engine with the shipped rule, on one node without GPUs."""

    def __init__(self, host: Host) -> None:
        self.engine = Engine(RuleSet(rules=tuple(rule for rule in RULES if rule.alert == ALERT)))
        self.host = host
        limit = None if host.limit is None else round(host.limit * GIB)
        facts = wire.HostFacts(memory_total_bytes=round(host.total * GIB), memory_limit_bytes=limit)
        hello = wire.Hello(
            protocol=1,
            agent_version="0",
            node="n",
            session="s",
            sent_at=0,
            interval_seconds=READ_SECONDS,
            facts=wire.NodeFacts(host=facts),
            run="r",
        )
        self.engine.observe(hello, "n", 0.0)
        self.open: dict[str, int] = {}
        self.episodes = 0

    def tell(self, at: float, step: int, over: bool, gib: float) -> None:
        held = round(gib * GIB)
        sample = wire.HostSample(memory_used_bytes=held, cgroup_used_bytes=held if self.host.limit else None)
        heard = self.engine.observe(wire.Sample(seq=1, at=at, host=sample), "n", at)
        if over and self.host.told:
            body = wire.Step(step=step, step_seconds=self.host.step_seconds)
            heard += self.engine.observe(wire.Event(seq=1, at=at, body=body, run="r"), "n", at)
        for one in (*heard, *self.engine.advance(at)):
            if one.change != "state":
                continue
            if one.state == "firing":
                self.episodes += not self.open
                self.open.setdefault(one.id, step)
            else:
                self.open.pop(one.id, None)


def outcome_of(seed: int, *, leaking: bool) -> Outcome:
    dice = random.Random(seed * 2 + leaking)
    host = host_of(dice, leaking=leaking)
    watch, wrong, step, died = Watch(host), 0, 0, False
    for at, step, over, gib in used(host, dice):
        died = leaking and gib >= KILLED_AT * host.bound
        if died:
            break
        watch.tell(at, step, over, min(gib, KILLED_AT * host.bound - 0.1))
        wrong = watch.episodes if step < host.onset or not leaking else wrong
    for defect in watch.engine.defects:
        raise defect.error
    warned = min(watch.open.values(), default=None) if died else None
    return Outcome(host, step, died, warned, wrong)


def report(seeds: range) -> None:
    healthy = [outcome_of(seed, leaking=False) for seed in seeds]
    steps, wrong = sum(one.steps for one in healthy), sum(one.wrong for one in healthy)
    print(f"healthy: {wrong} false in {steps:,} steps of {len(healthy)} runs, {1000 * wrong / steps:.3f} in 1,000")
    failing = [one for seed in seeds if (one := outcome_of(seed, leaking=True)).died]
    for told in (True, False):
        group = [one for one in failing if one.host.told == told]
        leads = [one.lead for one in group if one.lead > 0]
        print(
            f"leaking, steps {'told' if told else 'not told'}: warned {len(leads)} of {len(group)}, "
            f"lead {median(leads):g} steps, p10 {quantiles(leads, n=10)[0]:.3g}; "
            f"{sum(one.wrong for one in group)} false before the leak"
        )


def cost() -> None:
    """Of one judgement of both rules when a step is over, on a node with a day behind it; and of one between steps."""
    for leaking in (False, True):
        dice = random.Random(5)
        host = host_of(dice, leaking=leaking)._replace(told=True, step_seconds=150.0)
        watch, spent, count, idle = Watch(host), 0.0, 0, 0.0
        for at, step, over, gib in used(host, dice):
            watch.tell(at, step, False, gib)
            if not over:
                continue
            body = wire.Step(step=step, step_seconds=host.step_seconds)
            watch.engine.recall(wire.Event(seq=1, at=at, body=body, run="r"), "n", at)
            spent, count = spent + judging_seconds(watch, at), count + 1
            idle += judging_seconds(watch, at)
        name = "leaking" if leaking else "healthy"
        print(
            f"{name}: {1e6 * spent / count:.0f} us a step, {1e6 * idle / count:.1f} us a second while an alert is open"
        )


def judging_seconds(watch: Watch, at: float) -> float:
    conditions = [condition for rule in watch.engine.rules.rules for condition in rule.when]
    subject, fleet = watch.engine.fleet.nodes["n"].subject, watch.engine.fleet
    began = time.thread_time()
    with fleet.keeping:  # as the judge does
        for condition in conditions:
            condition.judge(fleet, subject, at)
    return time.thread_time() - began


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--tuning", action="store_true", help="by the seeds that were looked at")
    report(TUNING_SEEDS if parser.parse_args().tuning else SEEDS)
    cost()


if __name__ == "__main__":
    main()
