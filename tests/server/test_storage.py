"""How much is stored is measured, said, and told as growth once that means something."""

import time
from pathlib import Path

import pytest
from tests.server.house import hello, sample
from tests.server.running_server import AgentClient, serving, settings_in, until

from oomwatch.store.sizes import Sizes
from oomwatch.store.store import Store
from oomwatch.web.storagewatch import NOT_MEASURED, StorageWatch

NOON = 1_699_963_200.0
MIB = 2**20


def sized(used: int) -> Sizes:
    return Sizes(database_bytes=2 * used, used_bytes=used, history=())


def test_an_empty_database_has_a_size_and_no_history(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    found = store.sizes()
    store.checkpoint()
    store.close()
    assert found.database_bytes == (tmp_path / "oomwatch.db").stat().st_size
    assert [(one.kept, one.chunks, one.oldest_at) for one in found.history] == [
        ("raw", 0, None), ("10s", 0, None), ("1m", 0, None),
    ]  # fmt: skip


def test_growth_is_told_from_an_hour_on_and_is_that_of_the_last_day() -> None:
    watch = StorageWatch()
    assert watch.latest == NOT_MEASURED
    watch.measure(lambda: sized(10 * MIB), NOON)
    watch.measure(lambda: sized(11 * MIB), NOON + 1800)
    assert (watch.latest.used_bytes, watch.latest.growth_bytes_per_day) == (11 * MIB, None)
    watch.measure(lambda: sized(12 * MIB), NOON + 7200)
    assert watch.latest.growth_bytes_per_day == pytest.approx(24 * MIB)
    watch.measure(lambda: sized(12 * MIB), NOON + 7200 + 86_400)
    assert (watch.latest.growth_bytes_per_day, watch.latest.growth_since_at) == (0.0, NOON + 7200)


def test_a_database_that_does_not_tell_its_size_has_none() -> None:
    watch = StorageWatch()
    watch.measure(lambda: Sizes(database_bytes=None, used_bytes=None, history=()), NOON)
    assert (watch.latest.database_bytes, watch.latest.growth_bytes_per_day) == (None, None)


def test_a_running_server_tells_it_to_scripts_and_to_prometheus(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello("gpu-07", sent_at=time.time()))
        agent.say(sample(1, 10, time.time()))
        agent.hear_ack_of(1)
        found = until(
            "a measurement", lambda: told if (told := server.get("/api/v1/storage").json())["history"] else None
        )
        assert [one["kept"] for one in found["history"]] == ["raw", "10s", "1m"]
        assert found["growth_bytes_per_day"] is None
        page = server.get("/metrics").text
        assert f"oomwatch_database_bytes {float(found['database_bytes'])}" in page
        assert 'oomwatch_history_chunks{kept="raw"}' in page
        assert "\noomwatch_database_growth_bytes_per_day " not in page  # of a growth that is not known nothing is told


def test_a_figure_of_every_gpu_of_a_node_or_a_run_is_one_question(tmp_path: Path) -> None:
    now = time.time()
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello("gpu-07", sent_at=now, run="r", gpus=2))
        agent.say(sample(1, 10, now, gpus=2))
        agent.hear_ack_of(1)
        times = f"series=gpu_used_bytes&from={now - 60}&to={now + 60}"
        for whose in ("node=gpu-07", "run=r"):
            found = server.get(f"/api/v1/history/gpus?{times}&{whose}").json()
            assert [one["labels"] for one in found] == [{"node": "gpu-07", "gpu": gpu} for gpu in ("0", "1")]
            assert all(len(one["at"]) == 1 for one in found)
        assert server.get(f"/api/v1/history/gpus?{times}").status_code == 400
        refused = server.get(f"/api/v1/history/gpus?{times.replace('gpu_used', 'host_memory_used')}&run=r")
        assert "not one that is read of each GPU" in refused.json()["error"]
