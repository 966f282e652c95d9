"""Configurations: what leaves the node of them, and that nothing in them is ever run."""

import pprint
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.logs.config_keys import ALLOWED, allowed_values
from oomwatch_agent.logs.config_text import config_of, parse
from oomwatch_agent.logs.reader import LineReader

CONFIG = {
    "actor_rollout_ref": {
        "actor": {"ppo_micro_batch_size_per_gpu": 8, "fsdp_config": {"param_offload": True, "model_dtype": "fp32"}},
        "model": {"path": "/models/secret-7b", "lora_rank": 0, "target_modules": "all-linear"},
        "ref": {"strategy": "${actor_rollout_ref.actor.strategy}"},
        "rollout": {"n": 12, "gpu_memory_utilization": 0.6, "cudagraph_capture_sizes": [1, 2, 4], "name": "vllm"},
    },
    "data": {"train_batch_size": 60, "train_files": "/data/private.parquet"},
    "trainer": {"logger": ["console", "file"], "n_gpus_per_node": 6, "wandb_api_key": "0123456789abcdef"},
}
EXPECTED: dict[str, wire.ConfigValue] = {
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 8,
    "actor_rollout_ref.actor.fsdp_config.param_offload": True,
    "actor_rollout_ref.actor.fsdp_config.model_dtype": "fp32",
    "actor_rollout_ref.model.lora_rank": 0,
    "actor_rollout_ref.model.target_modules": "all-linear",
    "actor_rollout_ref.rollout.n": 12,
    "actor_rollout_ref.rollout.gpu_memory_utilization": 0.6,
    "actor_rollout_ref.rollout.cudagraph_capture_sizes": "1,2,4",
    "actor_rollout_ref.rollout.name": "vllm",
    "data.train_batch_size": 60,
    "trainer.logger": "console,file",
    "trainer.n_gpus_per_node": 6,
}


def configs(lines: list[str]) -> list[wire.Config]:
    reader = LineReader()
    found = [one.body for number, line in enumerate(lines, 1) for one in reader.feed(line, number)]
    return [body for body in found if isinstance(body, wire.Config)]


def printed(pid: int = 7) -> list[str]:
    return [f"\x1b[36m(TaskRunner pid={pid})\x1b[0m {line}" for line in pprint.pformat(CONFIG).splitlines()]


def test_only_allowed_keys_leave_and_no_path_secret_or_reference() -> None:
    assert allowed_values(CONFIG) == EXPECTED


def test_a_printed_configuration_is_collected_from_its_lines() -> None:
    assert configs(printed()) == [wire.Config(values=EXPECTED, framework="verl")]


def test_lines_of_other_processes_between_do_not_matter() -> None:
    mixed = [line for own in printed() for line in (own, "(WorkerDict pid=8) } ] ) and more }")]
    assert configs(mixed) == configs(printed())


def test_one_that_never_ends_is_given_up() -> None:
    lines = [*printed()[:-1], *(["(TaskRunner pid=7) 'x': 1,"] * 7000), printed()[-1]]
    assert configs(lines) == []


@pytest.mark.parametrize(
    "text",
    [
        "{'actor_rollout_ref': {'rollout': {'n': __import__('os').getpid()}}}",
        "{'actor_rollout_ref': {'rollout': {'n': 9 ** 9 ** 9}}}",
        "{'actor_rollout_ref': " + "{'a':" * 300 + "1" + "}" * 300 + "}",
        "{'actor_rollout_ref': {",
        "\0",
    ],
)
def test_code_and_nonsense_are_no_configuration(text: str) -> None:
    assert parse(text) is None
    assert configs([text]) == []


def test_a_configuration_without_any_allowed_key_is_none() -> None:
    assert config_of({"model": {"path": "x"}}) is None
    assert config_of([1, 2]) is None


def test_every_allowed_key_has_its_reason() -> None:
    assert all(why and "path" not in key and "key" not in key for key, why in ALLOWED.items())


def test_verls_own_configuration_gives_what_advice_needs() -> None:
    log = Path(__file__).resolve().parents[2] / "fixtures" / "verl-0.9.1-leak" / "driver.log"
    (config,) = configs(log.read_text(encoding="utf-8").splitlines())
    assert config.values["actor_rollout_ref.rollout.gpu_memory_utilization"] == 0.5
    assert config.values["actor_rollout_ref.rollout.n"] == 12
    assert config.values["trainer.n_gpus_per_node"] == 6
    assert not any("/" in str(value) or "$" in str(value) for value in config.values.values())
