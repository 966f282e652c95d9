"""The roles of processes, by what they are called."""

import json
import os
import subprocess
import sys

import pytest

from oomwatch import wire
from oomwatch_agent.who.roles import SIGNS, better, role_of


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("ray::WorkerDict.actor_rollout_update_actor", "actor"),
        ("ActorRolloutRefWorker", "actor"),
        ("ray::WorkerDict.critic_compute_values", "critic"),
        ("CriticWorker", "critic"),
        ("RewardModelWorker", "reward"),
        ("ray::WorkerDict.ref_compute_ref_log_prob", "ref"),
        ("vLLMHttpServer", "rollout"),
        ("VLLM::EngineCore_DP0", "rollout"),
        ("TaskRunnerV1", "driver"),
        ("python3 -m verl.trainer.main_ppo", "driver"),
        ("ray::WorkerDict", None),
        ("python train.py", None),
        (None, None),
    ],
)
def test_a_name_tells_the_role(name: str | None, role: str | None) -> None:
    assert role_of(name) == role


def test_the_roles_are_those_of_the_protocol_in_the_same_order() -> None:
    assert tuple(SIGNS) == wire.ROLES


def test_the_probe_takes_the_same_words_for_the_same_roles() -> None:
    """In a process of its own: importing the probe starts it."""
    tell = "import json; from oomwatch_probe.identity import ROLES; print(json.dumps(dict(ROLES)))"
    quiet = os.environ | {"OOMWATCH_PROBE": "0"}
    told = subprocess.run([sys.executable, "-c", tell], env=quiet, capture_output=True, check=True, timeout=30)
    assert json.loads(told.stdout) == {role: list(signs) for role, signs in SIGNS.items()}


def test_a_role_that_a_newer_probe_may_name_is_less_than_those_known() -> None:
    assert better("judge", "driver") == "driver"
    assert better("judge", None) == "judge"
