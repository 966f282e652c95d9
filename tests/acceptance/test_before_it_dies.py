"""From a card that runs full to the files that tell why: real server, agent, probe and hook; torch is the stand-in."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.programs import Program, Server, agent, ending, until
from tests.nvml.standin import GIB, ScriptedGpus
from tests.probe.guests import AGENT, CUDA_IN_USE, FASTER, STANDIN, UUID
from tests.server.receiver import Receiver

pytestmark = pytest.mark.acceptance

RULES = """
rules:
  - alert: nearly_full
    severity: critical
    when: {kind: threshold, metric: gpu_used_ratio, above: 90%}
    keep_firing_for: 1s
    before_it_dies: [memory_snapshot, stacks, hook]
    summary: "GPU {gpu} of {node} is {value} full"
notify:
  group_wait: 100ms
  group_interval: 1s
  channels:
    - {kind: webhook, name: ops, url: "RECEIVER"}
"""
# Steps of half a second, told on its output as verl does.
TRAINING = """
import time, torch
from torch.cuda import memory
def update_actor():
    memory.take(100)
    time.sleep(0.5)
for step in range(1, 1000):
    update_actor()
    print(f"step:{step} - perf/time_per_step:0.5 - timing_s/step:0.5 - timing_s/gen:0.2", flush=True)
"""
HOOK = "#!/bin/sh\ncat > seen.json\necho checkpoint asked for\n"
ACTS = ["hook", "memory_snapshot", "stacks"]


def alert(server: Server) -> dict[str, Any] | None:
    return next(iter(server.alerts(alert="nearly_full", state="firing")), None)


def all_done(server: Server) -> dict[str, Any] | None:
    one = alert(server)
    return one if one is not None and sorted(act["act"] for act in one["acts"]) == ACTS else None


def train(folder: Path) -> Program:
    program = folder / "train.py"
    code = FASTER + "import oomwatch_probe\n" + CUDA_IN_USE.replace(UUID, "00000002-aaaa-bbbb-cccc-dddddddddddd")
    program.write_text(code + TRAINING)
    environ = {"PYTHONPATH": f"{STANDIN}:{AGENT}", "OOMWATCH_PROBE_SOCKET": str(folder / "probe.sock")}
    return Program("training", [str(program)], folder, environ)


def permitting(folder: Path) -> tuple[str, ...]:
    hook = folder / "ask-for-a-checkpoint"
    hook.write_text(HOOK)
    hook.chmod(0o755)
    acts = ("--allow-acts", "memory_snapshot,stacks,hook", "--hook", str(hook), "--acts-dir", str(folder / "acts"))
    return (*acts, "--interval", "0.25", "--probe", str(folder / "probe.sock"), "--ray", "off")


def test_before_a_card_is_full_it_is_written_down_what_fills_it(
    tmp_path: Path, receiver: Receiver, gpus: ScriptedGpus
) -> None:
    rules = tmp_path / "alerts.yaml"
    rules.write_text(RULES.replace("RECEIVER", receiver.url))
    server, training = Server(tmp_path, rules), train(tmp_path)
    log = ("--log", str(training.log), "--run", "qwen")
    watcher = agent(tmp_path, server, *log, *permitting(tmp_path), **gpus.environment)
    with ending(training, watcher, server):
        gpus.set(2, used_bytes=40 * GIB, processes=((training.pid, 39 * GIB),))
        until("some steps", lambda: any(len(run.get("steps", [])) > 3 for run in server.get("/api/v1/runs")))
        until("the probe's figures", lambda: "1 process, 1 GPU" in watcher.output)
        gpus.set(2, used_bytes=78 * GIB)
        told = until("every act to be told with the alert", lambda: all_done(server))
        assert training.running
        check_files(told["acts"], tmp_path / "acts")
        assert (
            f"the server asks for memory_snapshot, stacks, hook because of alert nearly_full ({told['id']})"
            in watcher.output
        )

        server.program.kill()
        server.start()
        until("the acts to be there after a restart", lambda: all_done(server))
        gpus.set(2, used_bytes=40 * GIB)
        until("the end of the alert, with the acts", lambda: "acts" in resolved(receiver))
        assert resolved(receiver)["acts"].count("done on gpu-07") == len(ACTS)


def resolved(receiver: Receiver) -> dict[str, str]:
    """What the webhook was told at the end."""
    alerts = [one for message in receiver.received for one in message.json()["alerts"] if one["status"] == "resolved"]
    return dict(alerts[-1]["annotations"]) if alerts else {}


def check_files(acts: list[dict[str, Any]], folder: Path) -> None:
    assert all(act["ok"] and act["node"] == "gpu-07" for act in acts), acts
    path = {act["act"]: Path(act["path"]) for act in acts}
    assert all(folder in one.parents for one in path.values())
    trace = pickle.loads((path["memory_snapshot"] / "memory.pickle").read_bytes())["device_traces"][0]  # noqa: S301
    assert len(trace) >= 100, "a step's allocations at least"
    assert "update_actor" in path["stacks"].read_text()
    assert path["hook"].read_text() == "checkpoint asked for\n"
    assert b'"alert":"nearly_full"' in (path["hook"].parent / "seen.json").read_bytes()
