"""What Prometheus reads."""

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
    house.service.take(session, sample(1, 40))
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
    house.service.take(session, wire.Sample(seq=1, at=START, gpus=(wire.GpuSample(gpu="0", status="no_data"),)))
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
    house.service.take(session, sample(1, 40))
    house.now += 60
    found = values(house)
    assert not any(name.startswith("oomwatch_gpu_memory_used_bytes") for name in found)
    assert found['oomwatch_agent_up{node="gpu-07"}'] == 0


def test_a_node_that_stopped_on_purpose_is_neither_up_nor_down() -> None:
    house = House()
    session, _ = house.connect()
    house.service.take(session, wire.Bye(seq=1, at=START))
    assert not any(name.startswith("oomwatch_agent_up") for name in values(house))


def test_the_tighter_of_machine_and_container_is_the_hosts_memory() -> None:
    house = House()
    facts = wire.NodeFacts(host=wire.HostFacts(memory_total_bytes=1000 * GIB, memory_limit_bytes=64 * GIB))
    session, _ = house.connect(
        wire.Hello(protocol=1, agent_version="0", node="n", session="s", sent_at=START, interval_seconds=1, facts=facts)
    )
    host = wire.HostSample(memory_used_bytes=100 * GIB, cgroup_used_bytes=60 * GIB)
    house.service.take(session, wire.Sample(seq=1, at=START, host=host))
    assert values(house)['oomwatch_host_memory_limit_bytes{node="n"}'] == 64 * GIB


def test_a_run_is_exported_by_its_last_step() -> None:
    house = House()
    session, _ = house.connect(hello(run="qwen7b"))
    step = wire.Step(step=7, step_seconds=90.0, rollout_seconds=30.0)
    torch = wire.TorchMemory(reserved_bytes=50 * GIB, allocated_bytes=40 * GIB, gpu="0")
    bodies: list[wire.EventBody] = [step, torch, wire.Reshard(marker="resume_kv_cache")]
    for seq, body in enumerate(bodies, start=1):
        house.service.take(session, wire.Event(seq=seq, at=START, body=body))
    found = values(house)
    assert found['oomwatch_step{run="qwen7b"}'] == 7
    assert found['oomwatch_step_seconds{run="qwen7b"}'] == 90
    assert found['oomwatch_rollout_seconds{run="qwen7b"}'] == 30
    assert found['oomwatch_reshard_cycles_total{run="qwen7b"}'] == 1
    assert found['oomwatch_torch_reserved_bytes{gpu="0",node="gpu-07",run="qwen7b"}'] == 50 * GIB
    assert found['oomwatch_torch_allocated_bytes{gpu="0",node="gpu-07",run="qwen7b"}'] == 40 * GIB


def test_every_rule_is_exported_and_counts_what_fires() -> None:
    house = House()
    assert values(house)['oomwatch_alerts_firing{alert="full",severity="warning"}'] == 0
    session, _ = house.connect(hello(gpus=2))
    house.service.take(session, sample(1, 79, gpus=2))
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
