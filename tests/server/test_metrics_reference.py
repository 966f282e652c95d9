"""Every metric is on its page, with its labels and how many series there can be of it; and it keeps to that."""

from collections import Counter

import msgspec
from tests.server.house import GIB, START, House, hello, sample
from tests.server.test_metrics import Channel, Nobody
from tests.server.write_metrics_page import PAGE, TABLES, page_with, table

from oomwatch import wire
from oomwatch.core.signals import SIGNALS
from oomwatch.metrics.family import LARGE_FLEET
from oomwatch.metrics.names import labels_of, metric_of
from oomwatch.metrics.page import Metrics, families

NODES, GPUS, RUN_NODES = 128, 8, 16  # each run on so many nodes
DECLARED = {family.name: family for family in families()}
ROLES = ("actor", "rollout", "ref")


def large_fleet() -> House:
    """1,024 GPUs that are all full, in 8 runs, with probes, engines and log lines."""
    house = House()
    for number in range(NODES):
        node = f"node-{number:03}"
        session, _ = house.connect(hello(node, run=f"run-{number // RUN_NODES}", gpus=GPUS))
        torch = tuple(
            wire.TorchSample(
                pid=100 * gpu + index, gpu=str(gpu), role=role, reserved_bytes=9 * GIB, allocated_bytes=GIB,
                alloc_retries_total=0,
            )
            for gpu in range(GPUS)
            for index, role in enumerate(ROLES)
        )  # fmt: skip
        engines = tuple(
            wire.EngineSample(engine="vllm", address=f"127.0.0.1:{port}", kv_used_ratio=0.5, requests_running=1)
            for port in (8000, 8001)
        )
        read = msgspec.structs.replace(sample(1, 79, gpus=GPUS), torch=torch, engines=engines)
        house.service.reception.take(session, read)
        phase = wire.TorchMemory(reserved_bytes=GIB, phase="rollout")
        house.service.reception.take(session, wire.Event(seq=2, at=START, body=phase))
        step = wire.Step(step=7, step_seconds=90.0, rollout_seconds=30.0, reshard_seconds=3.0)
        house.service.reception.take(session, wire.Event(seq=3, at=START + number, body=step))
    return house


def told_of(house: House) -> Metrics:
    return Metrics(house.service, lambda: [Channel()], Nobody())


def test_the_page_of_metrics_is_as_the_families_say() -> None:
    """Else: python -m tests.server.write_metrics_page"""
    for name, told in TABLES.items():
        assert PAGE.read_text(encoding="utf-8") == page_with(name, table(told))


def test_no_family_is_there_twice() -> None:
    assert [name for name, count in Counter(family.shown_name for family in families()).items() if count > 1] == []


def test_every_signal_of_the_rules_has_its_metric() -> None:
    for name in SIGNALS:
        family = DECLARED[metric_of(name)]
        assert family.labels == labels_of(name)


def test_a_large_fleet_keeps_to_the_labels_and_the_number_of_series_that_the_page_names() -> None:
    numbers = {**LARGE_FLEET, "rule": 1, "channel": 1}
    exported = 0
    for metric in told_of(large_fleet()).collect():
        if metric.name.startswith("process_"):
            continue
        family = DECLARED[metric.name]
        known = {*family.labels, *({"le"} if family.kind == "histogram" else ())}
        assert {label for one in metric.samples for label in one.labels} <= known, metric.name
        assert len(metric.samples) <= family.bound(numbers), metric.name
        exported += len(metric.samples)
    assert exported > 10 * NODES * GPUS


def test_the_series_of_gpus_are_as_many_as_there_are_gpus() -> None:
    counts = {metric.name: len(metric.samples) for metric in told_of(large_fleet()).collect()}
    assert counts["oomwatch_gpu_memory_used_bytes"] + counts["oomwatch_gpu_memory_usable_bytes"] == 2048
    assert counts["oomwatch_gpu_used_ratio"] == counts["oomwatch_alert_firing"] == 1024
    assert counts["oomwatch_torch_reserved_bytes"] == 1024 * len(ROLES)
    assert counts["oomwatch_run_phase"] == 8 * len(wire.PHASES)
