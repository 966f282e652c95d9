"""What Prometheus reads."""

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from tests.server.house import GIB, START, House, hello, sample

from oomwatch import __version__, wire
from oomwatch.metrics import Metrics


class Channel:
    name, delivered_total, failed_total, dropped_total = "slack", 3, 1, 0


def values(house: House) -> dict[str, float]:
    """Every sample of the page, by name and labels as Prometheus writes them."""
    page = Metrics(house.service, lambda: [Channel()]).page().decode()
    found = {}
    for family in text_string_to_metric_families(page):
        for one in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(one.labels.items()))
            found[f"{one.name}{{{labels}}}" if labels else one.name] = one.value
    return found


def test_a_gpu_and_its_host_are_exported_in_base_units() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 40))
    found = values(house)
    assert found['oomwatch_gpu_memory_used_bytes{gpu="0",node="gpu-07"}'] == 40 * GIB
    assert found['oomwatch_gpu_memory_usable_bytes{gpu="0",node="gpu-07"}'] == 80 * GIB
    assert found['oomwatch_gpu_utilization_ratio{gpu="0",node="gpu-07"}'] == 0.5
    assert found['oomwatch_host_memory_used_bytes{node="gpu-07"}'] == 100 * GIB
    assert found['oomwatch_host_memory_limit_bytes{node="gpu-07"}'] == 1000 * GIB
    assert found['oomwatch_gpu_info{driver="",gpu="0",name="H100",node="gpu-07",uuid="GPU-gpu-07-0"}'] == 1
    assert found['oomwatch_agent_up{node="gpu-07"}'] == 1
    assert found['oomwatch_agent_messages_total{node="gpu-07"}'] == 1


def test_what_was_not_read_is_not_exported() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(
        session, wire.Sample(seq=1, at=START, gpus=(wire.GpuSample(gpu="0", status="no_data"),))
    )
    names = {name.split("{")[0] for name in values(house)}
    assert "oomwatch_gpu_memory_usable_bytes" in names
    assert not names & {
        "oomwatch_gpu_memory_used_bytes",
        "oomwatch_gpu_power_watts",
        "oomwatch_gpu_temperature_celsius",
        "oomwatch_host_memory_used_bytes",
        "oomwatch_torch_reserved_bytes",
        "oomwatch_step",
    }


def test_an_old_reading_is_not_exported_as_a_current_one() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 40))
    house.now += 60
    found = values(house)
    assert not any(name.startswith("oomwatch_gpu_memory_used_bytes") for name in found)
    assert found['oomwatch_agent_up{node="gpu-07"}'] == 0


def test_a_node_that_stopped_on_purpose_is_neither_up_nor_down() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, wire.Bye(seq=1, at=START))
    assert not any(name.startswith("oomwatch_agent_up") for name in values(house))


def test_the_tighter_of_machine_and_container_is_the_hosts_memory() -> None:
    house = House()
    facts = wire.NodeFacts(host=wire.HostFacts(memory_total_bytes=1000 * GIB, memory_limit_bytes=64 * GIB))
    session, _ = house.connect(
        wire.Hello(protocol=1, agent_version="0", node="n", session="s", sent_at=START, interval_seconds=1, facts=facts)
    )
    host = wire.HostSample(memory_used_bytes=100 * GIB, cgroup_used_bytes=60 * GIB)
    house.service.reception.take(session, wire.Sample(seq=1, at=START, host=host))
    assert values(house)['oomwatch_host_memory_limit_bytes{node="n"}'] == 64 * GIB


def test_a_run_is_exported_by_its_last_step() -> None:
    house = House()
    session, _ = house.connect(hello(run="qwen7b"))
    step = wire.Step(step=7, step_seconds=90.0, rollout_seconds=30.0)
    torch = wire.TorchMemory(reserved_bytes=50 * GIB, allocated_bytes=40 * GIB, gpu="0")
    bodies: list[wire.EventBody] = [step, torch, wire.Reshard(marker="resume_kv_cache")]
    for seq, body in enumerate(bodies, start=1):
        house.service.reception.take(session, wire.Event(seq=seq, at=START, body=body))
    found = values(house)
    assert found['oomwatch_step{run="qwen7b"}'] == 7
    assert found['oomwatch_step_seconds{run="qwen7b"}'] == 90
    assert found['oomwatch_rollout_seconds{run="qwen7b"}'] == 30
    assert found['oomwatch_reshard_cycles_total{run="qwen7b"}'] == 1
    assert found['oomwatch_torch_reserved_bytes{gpu="0",node="gpu-07",role="",run="qwen7b"}'] == 50 * GIB
    assert found['oomwatch_torch_allocated_bytes{gpu="0",node="gpu-07",role="",run="qwen7b"}'] == 40 * GIB


def test_what_a_probe_says_is_exported_for_each_role_and_the_log_no_longer() -> None:
    house = House()
    session, _ = house.connect(hello(run="qwen7b"))
    logged = wire.TorchMemory(reserved_bytes=50 * GIB, gpu="0")
    house.service.reception.take(session, wire.Event(seq=1, at=START, body=logged))
    torch = (
        wire.TorchSample(pid=1, gpu="0", role="actor", reserved_bytes=30 * GIB, alloc_retries_total=2),
        wire.TorchSample(pid=2, gpu="0", role="actor", reserved_bytes=10 * GIB),
        wire.TorchSample(pid=3, gpu="0", role="rollout", reserved_bytes=20 * GIB, allocated_bytes=5 * GIB),
        wire.TorchSample(pid=4, reserved_bytes=GIB),  # of no GPU that is known
    )
    house.service.reception.take(session, msgspec.structs.replace(sample(2, 70), torch=torch))
    found = {name: value for name, value in values(house).items() if name.startswith("oomwatch_torch")}
    labels = 'gpu="0",node="gpu-07",role="{}",run="qwen7b"'
    actor, rollout = labels.format("actor"), labels.format("rollout")
    assert found == {
        f"oomwatch_torch_reserved_bytes{{{actor}}}": 40 * GIB,
        f"oomwatch_torch_reserved_bytes{{{rollout}}}": 20 * GIB,
        f"oomwatch_torch_allocated_bytes{{{rollout}}}": 5 * GIB,
        f"oomwatch_torch_alloc_retries_total{{{actor}}}": 2,
    }
    house.now += 60
    assert not any('role="actor"' in name for name in values(house))


def test_a_rollout_engine_is_exported_while_it_is_heard() -> None:
    house = House()
    session, _ = house.connect()
    engine = wire.EngineSample(
        engine="vllm", address="127.0.0.1:8000", run="r", kv_used_ratio=0.97, requests_waiting=3, preemptions_total=12
    )
    house.service.reception.take(session, msgspec.structs.replace(sample(1, 40), engines=(engine,)))
    labels = '{address="127.0.0.1:8000",engine="vllm",node="gpu-07",run="r"}'
    found = values(house)
    assert found[f"oomwatch_kv_cache_used_ratio{labels}"] == 0.97
    assert found[f"oomwatch_engine_requests_waiting{labels}"] == 3
    assert found[f"oomwatch_engine_preemptions_total{labels}"] == 12
    assert f"oomwatch_engine_requests_running{labels}" not in found
    house.now += 61
    assert not any(name.startswith("oomwatch_kv") for name in values(house))


def test_every_rule_is_exported_and_counts_what_fires() -> None:
    house = House()
    assert values(house)['oomwatch_alerts_firing{alert="full",severity="warning"}'] == 0
    session, _ = house.connect(hello(gpus=2))
    house.service.reception.take(session, sample(1, 79, gpus=2))
    assert values(house)['oomwatch_alerts_firing{alert="full",severity="warning"}'] == 2


def test_the_server_tells_of_itself() -> None:
    house = House()
    house.service.report_rules("alerts.yaml:3:1: no")
    found = values(house)
    assert found["oomwatch_rules_reload_failed"] == 1
    assert found["oomwatch_messages_unknown_total"] == found["oomwatch_messages_malformed_total"] == 0
    assert found['oomwatch_notifications_total{channel="slack",outcome="delivered"}'] == 3
    assert found[f'oomwatch_build_info{{version="{__version__}"}}'] == 1
    assert found["process_resident_memory_bytes"] > 0
