"""What Prometheus reads."""

import gzip

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families
from tests.core.story import shipped
from tests.server.house import FULL_AFTER_A_WHILE, GIB, START, House, hello, sample

from oomwatch import __version__, wire
from oomwatch.metrics.alerts import LISTED_MAX
from oomwatch.metrics.page import Metrics, encode, rooms_with
from oomwatch.rulefile import parse_rules


class Channel:
    name, waiting, delivered_total, failed_total, retries_total, dropped_total = "slack", 5, 3, 1, 4, 0


class Nobody:
    def __len__(self) -> int:
        return 0

    def longest_queue(self) -> int:
        return 0


def values(house: House, compat: tuple[str, ...] = ()) -> dict[str, float]:
    """Every sample of the page, by name and labels as Prometheus writes them."""
    told = Metrics(house.service, lambda: [Channel()], Nobody(), rooms_with(compat)).collect()
    page = encode(told).content.decode()
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
    found = {
        name: value
        for name, value in values(house).items()
        if name.startswith(("oomwatch_torch_res", "oomwatch_torch_a")) and "ratio" not in name
    }
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


def test_signals_are_exported_as_the_rules_see_them() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 40))
    found = values(house)
    assert found['oomwatch_gpu_used_ratio{gpu="0",node="gpu-07"}'] == 0.5
    assert found['oomwatch_gpu_lost{gpu="0",node="gpu-07"}'] == 0
    assert found['oomwatch_host_memory_ratio{node="gpu-07"}'] == 0.1
    house.now += 60
    found = values(house)
    assert found['oomwatch_agent_silent_seconds{node="gpu-07"}'] == 60
    assert not any(name.startswith("oomwatch_gpu_used_ratio") for name in found)


def test_the_phase_of_a_run_is_one_of_all_phases_until_nobody_tells() -> None:
    house = House()
    session, _ = house.connect(hello(run="qwen7b"))
    assert not any(name.startswith("oomwatch_run_phase") for name in values(house))
    body = wire.TorchMemory(reserved_bytes=GIB, phase="update_actor")
    house.service.reception.take(session, wire.Event(seq=1, at=START, body=body))
    phases = {name: value for name, value in values(house).items() if name.startswith("oomwatch_run_phase")}
    assert phases.pop('oomwatch_run_phase{phase="update_actor",run="qwen7b"}') == 1
    assert len(phases) == len(wire.PHASES) - 1
    assert set(phases.values()) == {0}


def test_alerts_are_counted_by_state_and_listed_one_by_one() -> None:
    house = House(FULL_AFTER_A_WHILE)
    session, _ = house.connect(hello(gpus=2, run="r"))
    house.service.reception.take(session, sample(1, 79, gpus=2))
    assert values(house)['oomwatch_alerts{alert="full",severity="warning",state="pending"}'] == 2
    for second in range(1, 31):
        house.now += 1
        house.service.reception.take(session, sample(1 + second, 79, house.now, gpus=2))
    found = values(house)
    assert found['oomwatch_alerts{alert="full",severity="warning",state="pending"}'] == 0
    assert found['oomwatch_alerts{alert="full",severity="warning",state="firing"}'] == 2
    listed = {name for name in found if name.startswith("oomwatch_alert_firing")}
    assert listed == {
        f'oomwatch_alert_firing{{alert="full",gpu="{gpu}",node="gpu-07",run="r",severity="warning"}}' for gpu in (0, 1)
    }
    assert found["oomwatch_alerts_unlisted"] == 0


def test_a_steady_alert_counts_as_information() -> None:
    steady = parse_rules(
        """
rules:
  - alert: full
    severity: warning
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%, steady: 5m}
    summary: "full"
"""
    ).rules
    house = House(steady)
    session, _ = house.connect()
    for second in range(0, 900, 2):
        house.now = START + second
        house.service.reception.take(session, sample(1 + second, 79, house.now))
    found = values(house)
    assert found['oomwatch_alert_firing{alert="full",gpu="0",node="gpu-07",run="",severity="info"}'] == 1
    assert found['oomwatch_alerts{alert="full",severity="info",state="firing"}'] == 1
    assert found['oomwatch_alerts{alert="full",severity="warning",state="firing"}'] == 0


def test_the_list_of_alerts_is_bounded_and_says_how_many_are_beyond_it() -> None:
    house = House()
    for number in range(LISTED_MAX // 64 + 1):
        session, _ = house.connect(hello(f"n{number}", gpus=64))
        house.service.reception.take(session, sample(1, 79, gpus=64))
    found = values(house)
    assert sum(name.startswith("oomwatch_alert_firing{") for name in found) == LISTED_MAX
    assert found["oomwatch_alerts_unlisted"] == 64


def test_the_lag_of_a_reading_counts_from_its_own_moment_on_our_clock() -> None:
    house = House()
    session, _ = house.connect(hello(sent_at=START + 500))  # its clock is fast
    house.now += 3
    house.service.reception.take(session, sample(1, 40, START + 502))
    found = values(house)
    assert found["oomwatch_ingest_lag_seconds_sum"] == 1
    assert found['oomwatch_ingest_lag_seconds_bucket{le="0.5"}'] == 0
    assert found['oomwatch_ingest_lag_seconds_bucket{le="1.0"}'] == found["oomwatch_ingest_lag_seconds_count"] == 1


def test_the_server_tells_how_long_it_judged_and_stored_and_what_waits() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    found = values(house)
    assert found['oomwatch_queue_length{queue="messages"}'] == 2  # the hello too
    assert found['oomwatch_queue_length{queue="alerts"}'] == 1
    assert found["oomwatch_rule_evaluation_seconds_count"] == 2
    assert found["oomwatch_store_write_seconds_count"] == 0
    assert found["oomwatch_agents_connected"] == 1
    house.flush()
    found = values(house)
    assert found['oomwatch_queue_length{queue="messages"}'] == found['oomwatch_queue_length{queue="alerts"}'] == 0
    assert found["oomwatch_store_write_seconds_count"] == 2
    house.now += 7
    assert values(house)["oomwatch_beat_age_seconds"] == 7


def test_messages_that_find_no_room_are_counted() -> None:
    house = House(entries_max=1)
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 40))
    assert values(house)["oomwatch_messages_refused_total"] == 1


def test_the_format_and_the_packing_are_those_that_are_asked_for() -> None:
    told = Metrics(House().service, lambda: [Channel()], Nobody()).collect()
    plain = encode(told)
    assert plain.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b"# EOF" not in plain.content
    asked = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    packed = encode(told, asked, "gzip, deflate")
    assert packed.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert packed.headers["Content-Encoding"] == "gzip"
    page = gzip.decompress(packed.content).decode()
    assert page.endswith("# EOF\n")
    names = {family.name for family in openmetrics_families(page)}  # type: ignore[no-untyped-call]
    assert {"oomwatch_failures", "oomwatch_build", "oomwatch_ingest_lag_seconds"} <= names


def test_what_fills_up_is_exported_with_the_time_that_is_left() -> None:
    rules = shipped("memory_forecast", "warning")
    house = House(rules)
    session, _ = house.connect(hello(run="r"))
    assert not any(name.startswith("oomwatch_forecast") for name in values(house))
    seq = 0
    for number in range(1, 36):
        for used_gib in (30, 30, 50 + 0.4 * number, 50 + 0.4 * number):
            house.now += 10
            seq += 1
            house.service.reception.take(session, sample(seq, used_gib, house.now))
        seq += 1
        phases = {"rollout": 20.0, "update_actor": 20.0}
        step = wire.Step(step=number, step_seconds=40, rollout_seconds=20, phase_seconds=phases)
        house.service.reception.take(session, wire.Event(seq=seq, at=house.now, body=step))
    labels = '{gpu="0",node="gpu-07",place="device"}'
    found = values(house)
    assert found[f"oomwatch_forecast_full_steps{labels}"] == pytest.approx((80 - 64) / 0.4, abs=3)
    assert found[f"oomwatch_forecast_full_seconds{labels}"] == 40 * found[f"oomwatch_forecast_full_steps{labels}"]
    house.now += 3600
    assert not any(name.startswith("oomwatch_forecast") for name in values(house))


def test_what_is_muted_and_what_somebody_takes_care_of_is_counted() -> None:
    house = House()
    session, _ = house.connect(hello(gpus=2))
    house.service.reception.take(session, sample(1, 79, gpus=2))
    house.flush()
    first, second = house.service.board.open()
    mute = wire.Mute(kind="silence", by="s1")
    care = wire.Acknowledgement(by="ann", at=START)
    house.service.board.remember([msgspec.structs.replace(first, muted=(mute, mute), acknowledged=care), second], START)
    found = values(house)
    assert found['oomwatch_alerts_muted{alert="full",kind="silence",severity="warning"}'] == 1
    assert found['oomwatch_alerts_acknowledged{alert="full",severity="warning"}'] == 1


def test_the_families_of_dcgm_are_there_where_they_are_asked_for_alone() -> None:
    house = House()
    facts = wire.GpuFacts(gpu="0", uuid="GPU-1", name="H100", total_bytes=80 * GIB, reserved_bytes=GIB)
    card = wire.GpuSample(
        gpu="0", used_bytes=30 * GIB + 1, utilization_ratio=0.25, power_watts=300.0, temperature_celsius=55.0
    )
    session, _ = house.connect(msgspec.structs.replace(hello(), facts=wire.NodeFacts(gpus=(facts,))))
    house.service.reception.take(session, wire.Sample(seq=1, at=START, gpus=(card,)))
    assert not any(name.startswith("DCGM") for name in values(house))
    labels = 'Hostname="gpu-07",UUID="GPU-1",device="nvidia0",gpu="0",hostname="gpu-07",modelName="H100"'
    found = values(house, compat=("dcgm",))
    assert {name: value for name, value in found.items() if name.startswith("DCGM")} == {
        f"DCGM_FI_DEV_FB_USED{{{labels}}}": 30 * 1024,
        f"DCGM_FI_DEV_FB_FREE{{{labels}}}": 49 * 1024 - 1,
        f"DCGM_FI_DEV_FB_RESERVED{{{labels}}}": 1024,
        f"DCGM_FI_DEV_GPU_TEMP{{{labels}}}": 55,
        f"DCGM_FI_DEV_POWER_USAGE{{{labels}}}": 300,
        f"DCGM_FI_DEV_GPU_UTIL{{{labels}}}": 25,
    }


def test_the_time_of_each_rule_is_told() -> None:
    house = House()
    session, _ = house.connect()
    assert values(house)['oomwatch_rule_seconds_total{alert="full",severity="warning"}'] >= 0
    before = house.service.engine.spent.seconds.get("full/warning", 0.0)
    house.service.reception.take(session, sample(1, 79))
    assert values(house)['oomwatch_rule_seconds_total{alert="full",severity="warning"}'] > before
