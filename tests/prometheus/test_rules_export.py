"""Prometheus takes the exported rules, and fires by them on what oomwatch fires on."""

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.core.story import SHIPPED
from tests.prometheus.servers import need, prometheus, promtool, scraping, until
from tests.server.house import GIB, START, House, hello
from tests.server.running_server import AgentClient, serving, settings_in
from tests.server.test_metrics import Nobody

from oomwatch import wire
from oomwatch.core.rule import RuleSet
from oomwatch.metrics.page import Metrics
from oomwatch.promrules.rulefile import prometheus_rules
from oomwatch.rulefile import parse_rules
from oomwatch.service.sessions import Session

THE_FOUR = ("gpu_memory_high", "torch_reserved_high", "rollout_time_jump", "reshard_storm")
FOUR = RuleSet(rules=tuple(rule for rule in SHIPPED.rules if rule.alert in THE_FOUR))
SCRAPE_SECONDS, STEP_SECONDS, STEPS = 5, 60, 20
Alert = tuple[str, str, str, str]  # its name, its severity, and node and GPU or the run
Series = dict[tuple[str, ...], dict[int, float]]  # by name and labels: values by the number of the scrape


def check(text: str, folder: Path) -> None:
    (folder / "rules.yml").write_text(text, encoding="utf-8")
    told = promtool("check", "rules", "rules.yml", folder=folder)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "duplicate" not in told.stdout


def test_promtool_takes_the_shipped_rules(tmp_path: Path) -> None:
    check(prometheus_rules(SHIPPED), tmp_path)
    check(prometheus_rules(SHIPPED, keep_firing_for=True), tmp_path)


def test_promtool_takes_rules_with_odd_names_texts_and_overrides(tmp_path: Path) -> None:
    rules = parse_rules(
        """
rules:
  - alert: 'a "quoted" \\ name'
    when: {kind: threshold, metric: gpu_used_bytes, below: 1GiB}
    for: 1m30s
    summary: 'it is {value}, {{ not a template }} [and {run}] (of {usable_bytes})'
  - alert: '{{ odd }}'
    when: {kind: forecast}
    summary: '{value}'
  - alert: mixed
    when: {kind: threshold, metric: torch_reserved_ratio, above: 90%}
    summary: "{value} in {run}"
  - alert: either
    when: [{kind: threshold, metric: step_seconds, above: 1h}, {kind: rate, of: reshard_cycles, above_per_minute: 2}]
    for: 30s
    summary: "{value}"
overrides:
  - alert: 'a "quoted" \\ name'
    match: {node: "gpu-[!0-9]?*", run: 'a"b.c*'}
    set: {for: 5s}
  - alert: either
    match: {run: "x*"}
    set: {enabled: false}
"""
    ).rules
    check(prometheus_rules(rules, keep_firing_for=True), tmp_path)


# ------------------------------------------------------------ the four rules, second by second


class Node:
    """A node whose messages are numbered."""

    def __init__(self, house: House, name: str, run: str, gpus: int = 1) -> None:
        self.house, self.seq, self.gpus = house, 0, gpus
        self.session: Session = house.connect(hello(name, run=run, gpus=gpus))[0]

    def read(self, used_gib: Mapping[str, float]) -> None:
        cards = tuple(wire.GpuSample(gpu=gpu, used_bytes=int(used * GIB)) for gpu, used in used_gib.items())
        self._take(wire.Sample(seq=self._next(), at=self.house.now, gpus=cards))

    def event(self, body: wire.EventBody) -> None:
        self._take(wire.Event(seq=self._next(), at=self.house.now, body=body))

    def _next(self) -> int:
        self.seq += 1
        return self.seq

    def _take(self, message: wire.Sample | wire.Event) -> None:
        self.house.service.reception.take(self.session, message)


def twenty_minutes(house: House) -> Iterator[int]:
    """Each second of a scene in which each of the four rules has something to say, and much that is none."""
    trains, switches = Node(house, "a", "slow", gpus=4), Node(house, "b", "restless")
    for second in range(STEPS * STEP_SECONDS):
        house.now = START + second
        step, into = divmod(second, STEP_SECONDS)
        torch_gib = 66 + step * 0.6
        trains.read({
            "0": 71 if into < 20 else 30,  # above 85 % for twenty seconds of each step
            "1": 71 if second < 20 else 30,  # once, and not for long enough
            "2": 67,  # below it always
            "3": torch_gib + 1,
        })  # fmt: skip
        switches.read({"0": 20})
        if into == 30:
            trains.event(wire.TorchMemory(reserved_bytes=int(torch_gib * GIB), gpu="3"))
        if into == STEP_SECONDS - 1:
            rollout_seconds = 150.0 if step == 12 else 30.0
            trains.event(wire.Step(step=step + 1, step_seconds=60, rollout_seconds=rollout_seconds))
        if second % 6 == 0 and 300 <= second < 600:
            switches.event(wire.Reshard(marker="resume_kv_cache"))  # ten a minute, for a while
        house.service.beat()
        yield second


def fires(house: House) -> set[Alert]:
    """What the server says that fires."""
    found: set[Alert] = set()
    for episode in house.service.engine.episodes():
        if episode.fired_at is not None:
            severity = "info" if episode.lowered else episode.rule.severity
            where = episode.labels if episode.subject.scope == "run" else {**episode.labels, "run": ""}
            place = " ".join(filter(None, (where.get("node"), where.get("gpu"), where.get("run"))))
            found.add((episode.rule.alert, severity, episode.subject.scope, place))
    return found


def scraped(house: House, number: int, series: Series) -> None:
    for metric in Metrics(house.service, list, Nobody()).collect():
        if metric.name.startswith("oomwatch_"):
            for one in metric.samples:
                labels = tuple(f'{name}="{value}"' for name, value in one.labels.items() if value)
                series.setdefault((one.name, *labels), {})[number] = one.value


def notation(values: Mapping[int, float], count: int) -> str:
    """As promtool writes a series: a gap begins with a mark that it ended, as Prometheus' scrapes have it."""
    told = []
    for number in range(count):
        missing = "stale" if number - 1 in values else "_"
        told.append(repr(values[number]) if number in values else missing)
    return " ".join(told)


def promtool_test(series: Series, count: int, expected: set[Alert], *, over: str) -> dict[str, Any]:
    """That these alerts, and no others of the four, have fired within `over` of the end."""
    named = f'alertstate="firing",alertname=~"{"|".join(THE_FOUR)}"'
    subjects = {"gpu": ("node, gpu", 'gpu!=""'), "run": ("run", 'gpu="",run!=""')}
    checks = []
    for scope, (labels, chosen) in subjects.items():
        samples = [
            {"labels": "{" + ", ".join(f'{key}="{value}"' for key, value in labelled.items()) + "}", "value": 1}
            for alert, severity, of, place in sorted(expected)
            if of == scope
            for labelled in [
                {"alertname": alert, "severity": severity, **dict(zip(labels.split(", "), place.split(), strict=True))}
            ]
        ]
        expr = f"max by (alertname, severity, {labels}) (max_over_time(ALERTS{{{named},{chosen}}}[{over}]))"
        checks.append({"expr": expr, "eval_time": f"{(count - 1) * SCRAPE_SECONDS}s", "exp_samples": samples})
    inputs = [
        {"series": f"{name}{{{','.join(labels)}}}", "values": notation(values, count)}
        for (name, *labels), values in series.items()
    ]
    return {"interval": f"{SCRAPE_SECONDS}s", "input_series": inputs, "promql_expr_test": checks}


def run_promtool(rules: RuleSet, test: dict[str, Any], folder: Path) -> None:
    (folder / "rules.yml").write_text(prometheus_rules(rules), encoding="utf-8")
    every = {"rule_files": ["rules.yml"], "evaluation_interval": f"{SCRAPE_SECONDS}s", "tests": [test]}
    (folder / "test.yml").write_text(yaml.safe_dump(every), encoding="utf-8")
    told = promtool("test", "rules", "test.yml", folder=folder)
    assert told.returncode == 0, told.stdout + told.stderr


def test_prometheus_fires_by_the_four_rules_on_the_subjects_that_oomwatch_fires_on(tmp_path: Path) -> None:
    need("promtool")
    house = House(FOUR)
    series: Series = {}
    fired: set[Alert] = set()
    for second in twenty_minutes(house):
        if second % SCRAPE_SECONDS == 0:
            scraped(house, second // SCRAPE_SECONDS, series)
            fired |= fires(house)
    assert fired == {
        ("gpu_memory_high", "warning", "gpu", "a 0"),
        ("gpu_memory_high", "info", "gpu", "a 0"),  # it has been as full before
        ("gpu_memory_high", "warning", "gpu", "a 3"),
        ("torch_reserved_high", "critical", "gpu", "a 3"),
        ("rollout_time_jump", "warning", "run", "slow"),
        ("reshard_storm", "warning", "run", "restless"),
    }
    count = math.ceil(STEPS * STEP_SECONDS / SCRAPE_SECONDS)
    run_promtool(FOUR, promtool_test(series, count, fired, over="1h"), tmp_path)
    run_promtool(FOUR, promtool_test(series, count, fires(house), over="1s"), tmp_path)


def test_a_real_prometheus_fires_on_a_real_server(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    rules = parse_rules(
        """
rules:
  - alert: full
    severity: warning
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    for: 1s
    summary: "GPU {gpu} of {node}: {value} (limit {limit})"
"""
    ).rules
    with serving(settings) as server, AgentClient(server) as agent:
        agent.greet(hello("n1", gpus=2, sent_at=time.time()))
        config = scraping(server.url, rule_files=["rules.yml"])
        with prometheus(config, files={"rules.yml": prometheus_rules(rules)}) as real:
            sequence = iter(range(1, 10_000))

            def firing() -> dict[str, Any] | None:
                cards = tuple(wire.GpuSample(gpu=gpu, used_bytes=used * GIB) for gpu, used in (("0", 79), ("1", 30)))
                agent.say(wire.Sample(seq=next(sequence), at=time.time(), gpus=cards))
                with contextlib.suppress(TimeoutError):
                    while True:  # what is not read keeps the connection from closing
                        agent.connection.recv(timeout=0)
                return next((one for one in real.alerts() if one["labels"]["alertname"] == "full"), None)

            alert = until("the alert", firing)
            assert (alert["labels"]["node"], alert["labels"]["gpu"]) == ("n1", "0")
            assert alert["annotations"]["summary"] == "GPU 0 of n1: 98.75% (limit 85 %)"
            until("the watchdog", lambda: "OomwatchWatchdog" in {one["labels"]["alertname"] for one in real.alerts()})
            assert {one["labels"].get("gpu") for one in real.alerts() if one["labels"]["alertname"] == "full"} == {"0"}
