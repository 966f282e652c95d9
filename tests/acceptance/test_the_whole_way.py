"""From the GPU and the log to the person: real server, real agent, real nvidia-ml-py, recorded logs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.programs import Server, agent, ending, until
from tests.acceptance.training import RUN, Training
from tests.nvml.standin import GIB, ScriptedGpus
from tests.server.receiver import Receiver

pytestmark = pytest.mark.acceptance
NODE = "gpu-07"
QUICK_AGENT = ("--interval", "0.25")


def firing(server: Server, alert: str) -> dict[str, Any] | None:
    return next((one for one in server.alerts(state="firing") if one["alert"] == alert), None)


def oom_alerts(server: Server) -> list[dict[str, Any]]:
    return [one for one in server.alerts(state="firing") if one["alert"] == "out_of_memory"]


def steps_known(server: Server) -> int:
    runs = server.get("/api/v1/runs")
    return max((step["step"]["step"] for run in runs if run["run"] == RUN for step in run.get("steps", [])), default=0)


def told(receiver: Receiver, status: str) -> set[str]:
    """Names of the alerts that the webhook was sent with this status."""
    alerts = [alert for message in receiver.received for alert in message.json()["alerts"]]
    return {alert["labels"]["alertname"] for alert in alerts if alert["status"] == status}


def step(server: Server, number: int, write: Callable[[], None]) -> None:
    write()
    until(f"step {number} to be known", lambda: steps_known(server) == number)


def test_the_four_rules_fire_on_real_input_and_resolve(
    tmp_path: Path, rules: Path, receiver: Receiver, gpus: ScriptedGpus
) -> None:
    training = Training(tmp_path)
    gpus.set(2, used_bytes=50 * GIB, processes=((25520, 49 * GIB),))
    gpus.set(3, used_bytes=50 * GIB, processes=((25591, 49 * GIB),))
    server = Server(tmp_path, rules)
    sources = ("--log", str(training.driver_log), "--ray", str(training.session), *QUICK_AGENT)
    watcher = agent(tmp_path, server, *sources, **gpus.environment)
    with ending(watcher, server):
        until("the agent's GPUs", lambda: server.get("/api/v1/nodes"))
        assert server.alerts() == []
        expected = play_the_leak(server, training, gpus)
        check_what_fired(server, training, expected)
        until("the webhook to be told of all", lambda: told(receiver, "firing") >= set(expected))

        calm_down(server, training, gpus)
        until("everything to be resolved", lambda: not server.alerts(state="firing"), seconds=90)
        until("the webhook to be told so", lambda: told(receiver, "resolved") >= set(expected))
        assert watcher.stop() == 0
        until("the node to have said goodbye", lambda: server.get("/api/v1/nodes")[0]["state"] == "stopped")
        assert server.program.stop() == 0


def play_the_leak(server: Server, training: Training, gpus: ScriptedGpus) -> dict[str, dict[str, str]]:
    """The recorded run to its end and on until torch's rise is seen; the labels that each alert must have."""
    gpu_2 = {"node": NODE, "gpu": "2", "run": RUN}
    for number in range(1, training.steps + 1):
        step(server, number, lambda number=number: training.do_step(number))  # type: ignore[misc]
    gpus.set(2, used_bytes=77 * GIB, processes=((25520, 76 * GIB),))
    until("gpu_memory_high", lambda: firing(server, "gpu_memory_high"))
    number = leak_on(server, training) + 1
    step(server, number, lambda: training.go_on(number, rollout_seconds=104.0, reserved_gib=76.0))
    training.run_out_of_memory()
    ooms = {"2", "3"}  # both ranks ran out
    until("out_of_memory", lambda: ooms == {one["labels"].get("gpu") for one in oom_alerts(server)})
    return {
        "gpu_memory_high": gpu_2,
        "torch_reserved_high": gpu_2,
        "rollout_time_jump": {"run": RUN},
        "reshard_storm": {"run": RUN},
        "out_of_memory": {"node": NODE, "gpu": "3", "run": RUN},
    }


def leak_on(server: Server, training: Training) -> int:
    """A GiB more with every step, on a machine of whatever speed, until the rule sees the rise; the last step's number.

    How many steps that takes depends on how many of them fall into one slice of the rule's time.
    """
    for number, reserved_gib in enumerate(range(61, 77), start=training.steps + 1):
        step(server, number, lambda n=number, r=reserved_gib: training.go_on(n, reserved_gib=r))  # type: ignore[misc]
        if firing(server, "torch_reserved_high"):
            return number
    until("torch_reserved_high", lambda: firing(server, "torch_reserved_high"))
    return number


def check_what_fired(server: Server, training: Training, expected: dict[str, dict[str, str]]) -> None:
    alerts = server.alerts()
    seen = [(one["alert"], one["labels"]) for one in alerts]
    other_rank = ("out_of_memory", expected["out_of_memory"] | {"gpu": "2"})
    assert sorted(seen, key=str) == sorted([*expected.items(), other_rank], key=str)
    assert all(one["summary"] and one["description"] and one["advice"] for one in alerts)
    (run,) = server.get("/api/v1/runs")
    assert run["nodes"] == [NODE]
    assert run["reshard_marker"] == "resume_kv_cache"
    # Read twice, from the driver's log and from Ray's own files, and counted once.
    assert run["reshard_cycles_total"] == training.steps + 1
    assert [one["step"]["step"] for one in run["steps"]] == list(range(1, steps_known(server) + 1))


def calm_down(server: Server, training: Training, gpus: ScriptedGpus) -> None:
    """Memory is given back, and the run goes on as usual until nothing of it is left to tell."""
    gpus.set(2, used_bytes=30 * GIB)
    number = steps_known(server) + 1
    while any(one["alert"] != "out_of_memory" for one in server.alerts(state="firing")):
        step(server, number, lambda number=number: training.go_on(number, reserved_gib=76.0))  # type: ignore[misc]
        number += 1
        assert number < 300, server.alerts(state="firing")


def test_nothing_is_lost_or_doubled_when_the_server_is_killed(
    tmp_path: Path, rules: Path, receiver: Receiver, gpus: ScriptedGpus
) -> None:
    server = Server(tmp_path, rules)
    watcher = agent(tmp_path, server, "--ray", "off", *QUICK_AGENT, "--run", "r", **gpus.environment)
    with ending(watcher, server):
        for index in range(4):
            gpus.set(index, used_bytes=75 * GIB)
        until("four alerts", lambda: len(server.alerts(state="firing")) == 4)
        before = {one["id"]: one["started_at"] for one in server.alerts(state="firing")}
        until("the webhook to be told", lambda: told(receiver, "firing"))

        server.program.kill()
        gpus.set(3, used_bytes=10 * GIB)
        until("the agent to miss the server", lambda: "connect" in watcher.output.splitlines()[-1].lower())
        server.start()
        until("the fourth to be resolved", lambda: len(server.alerts(state="firing")) == 3)

        after = {one["id"]: one["started_at"] for one in server.alerts()}
        assert after == before
        check_history_has_no_gap(server)
        check_webhook_heard_each_once(receiver)
        assert watcher.stop() == 0
        assert server.program.stop() == 0


def check_history_has_no_gap(server: Server) -> None:
    started = server.get("/api/v1/alerts")[0]["started_at"]

    def gaps() -> list[float] | None:
        query = f"series=gpu_used_bytes&node={NODE}&gpu=0&from={started}&to={started + 10}&step=1"
        history = server.get(f"/api/v1/history?{query}")
        return None if None in history["mean"] or not history["mean"] else history["at"]

    assert until("a history without a gap", gaps)


def check_webhook_heard_each_once(receiver: Receiver) -> None:
    """Each alert once, by the id that a receiver tells repetitions by: a server that is killed between the sending of a
    message and the noting of it sends it again."""
    until("the webhook to be told of the end", lambda: told(receiver, "resolved"))
    sent = [
        (alert["fingerprint"], alert["startsAt"], alert["status"])
        for message in {message.headers["webhook-id"]: message for message in receiver.received}.values()
        for alert in message.json()["alerts"]
        if alert["status"] == "firing"
    ]
    assert len(sent) == len(set(sent)) == 4


def test_a_gpu_whose_driver_hangs_or_gives_it_up_does_not_hide_the_others(
    tmp_path: Path, rules: Path, gpus: ScriptedGpus
) -> None:
    server = Server(tmp_path, rules)
    watcher = agent(tmp_path, server, "--ray", "off", *QUICK_AGENT, **gpus.environment)
    with ending(watcher, server):
        until("the agent's GPUs", lambda: server.get("/api/v1/nodes"))

        def statuses() -> list[str]:
            sample = server.get("/api/v1/nodes")[0].get("sample", {})
            return [gpu.get("status", "ok") for gpu in sample.get("gpus", [])]

        until("four readings", lambda: statuses() == ["ok"] * 4)
        gpus.set(1, hang=True)
        until("no data of the one that hangs", lambda: statuses() == ["ok", "no_data", "ok", "ok"])
        gpus.set(3, used_bytes=75 * GIB)
        until("an alert of another", lambda: firing(server, "gpu_memory_high"))
        gpus.set(1, hang=False)
        until("the answer of the one that hung", lambda: statuses() == ["ok"] * 4)
        gpus.set(0, lost=True)
        lost = until("gpu_lost", lambda: firing(server, "gpu_lost"))
        assert lost["labels"] == {"node": NODE, "gpu": "0"}
