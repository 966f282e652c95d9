"""SkyRL: a line for each timer."""

import re

from oomwatch import wire
from oomwatch_agent.logs.envelope import Record
from oomwatch_agent.logs.gathering import Gathering, Trainer
from oomwatch_agent.logs.units import NUMBER

_LINE = re.compile(rf"Finished: '(?P<key>\w{{1,60}})', time cost: (?P<value>{NUMBER})s$")


def _read(gathering: Gathering, record: Record) -> wire.Step | None:
    """A line for each timer; the one called 'step' is the last of a step. They are counted: none has a number."""
    if not (match := _LINE.match(record.text)):
        return None
    gathering.add(match["key"], match["value"])
    return gathering.tell(gathering.count + 1) if match["key"] == "step" else None


TRAINER = Trainer(
    name="SkyRL",
    gates=("', time cost: ",),
    names={
        "generate": "timing_s/gen",
        "step": "timing_s/step",
        "fwd_logprobs_values_reward": "timing_s/old_log_prob",
        "compute_advantages_and_returns": "timing_s/adv",
        "policy_train": "timing_s/update_actor",
        "critic_train": "timing_s/update_critic",
        "sync_weights": "timing_s/update_weights",
        "save_checkpoints": "timing_s/save_checkpoint",
        "eval": "timing_s/testing",
    },
    read=_read,
    example=(
        (
            "2026-04-15 07:57:53.102 | INFO     | skyrl_train.trainer:train:245 - Finished: 'generate', time cost: "
            "41.20s"
        ),
        (
            "2026-04-15 07:58:53.102 | INFO     | skyrl_train.trainer:train:310 - "
            "Finished: 'sync_weights', time cost: 1.98s"
        ),
        "2026-04-15 07:58:53.119 | INFO     | skyrl_train.trainer:train:238 - Finished: 'step', time cost: 101.37s",
    ),
    seen_in="composed: the timer's message in SkyRL's code",
)
