"""`oomwatch doctor --server URL --run NAME`: the configuration of a run that a server watches."""

import json
import time
from collections.abc import Iterator

import pytest
from tests.server.house import hello
from tests.server.running_server import AgentClient, RunningServer, serving, settings_in

from oomwatch import wire
from oomwatch.__main__ import main

RUN: dict[str, wire.ConfigValue] = {
    "data.train_batch_size": 60,
    "algorithm.adv_estimator": "grpo",
    "actor_rollout_ref.rollout.n": 12,
    "actor_rollout_ref.rollout.name": "vllm",
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": 8,
    "actor_rollout_ref.actor.ppo_mini_batch_size": 60,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 8,
    "trainer.n_gpus_per_node": 6,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that knows the configuration of one run, and another run without any."""
    with serving(settings_in(tmp_path_factory.mktemp("doctor"))) as server:
        with AgentClient(server) as one, AgentClient(server) as other:
            one.greet(hello("gpu-07", sent_at=time.time(), run="qwen7b", gpus=2))
            other.greet(hello("gpu-08", sent_at=time.time(), run="quiet"))
            config = wire.Config(values=RUN, framework="verl", version="0.9.1")
            step = wire.Step(step=4, step_seconds=60.0, rollout_seconds=20.0)
            one.say(wire.Event(seq=1, at=time.time(), body=config))
            other.say(wire.Event(seq=1, at=time.time(), body=step))
            one.hear_ack_of(1)
            other.hear_ack_of(1)
        yield server


def test_a_runs_configuration_is_looked_at_with_the_cards_that_it_is_on(
    server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--server", server.url, "--run", "qwen7b", "--model", "Qwen2.5-7B", "actor_rollout_ref.rollout.n=6"]
    assert main(["doctor", "--json", *words]) in (0, 1)
    report = json.loads(capsys.readouterr().out)
    assert report["derived"]["sequences_per_step"] == 360
    assert report["card"]["name"] == "H100 80GB"
    assert report["inputs"][0] == {"name": "run qwen7b", "kind": "json"}
    assert [row["key"] for row in report["shadowed"]] == ["actor_rollout_ref.rollout.n"]
    assert report["memory"]


@pytest.mark.parametrize(
    ("run", "said"),
    [("unheard", 'knows no run "unheard"; it knows '), ("quiet", 'knows no configuration of run "quiet"')],
)
def test_what_the_server_does_not_know_is_said(
    server: RunningServer, run: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--server", server.url, "--run", run]) == 2
    assert said in capsys.readouterr().err


def test_a_server_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--server", "http://127.0.0.1:9", "--run", "x"]) == 2
    assert "http://127.0.0.1:9 cannot be reached" in capsys.readouterr().err
