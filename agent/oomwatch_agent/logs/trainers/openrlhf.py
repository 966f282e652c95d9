"""OpenRLHF: one line a step."""

import re

from oomwatch import wire
from oomwatch_agent.logs.envelope import Record
from oomwatch_agent.logs.gathering import Gathering, Trainer, pairs
from oomwatch_agent.logs.trainers.lengths import LENGTHS

_LINE = re.compile(r"(?:✨ |� ?)?Global step (?P<step>\d{1,15}): (?P<metrics>\{.{1,16000}\})$")


def _read(gathering: Gathering, record: Record) -> wire.Step | None:
    if not (match := _LINE.match(record.text)):
        return None
    gathering.metrics = pairs(match["metrics"])
    return gathering.tell(int(match["step"]))


TRAINER = Trainer(
    name="OpenRLHF",
    gates=("Global step",),
    names={
        **LENGTHS,
        "timing/generation": "timing_s/gen",
        "timing/ppo_train": "timing_s/update_actor",
        "timing/broadcast": "timing_s/update_weights",
    },
    read=_read,
    example=(
        (
            "(PPOTrainer pid=41) ✨ Global step 1: {'policy_loss': 0.024, 'response_length': 512.5, "
            "'timing/generation': 41.2, 'timing/ppo_train': 29.9, 'timing/broadcast': 1.98}"
        ),
    ),
    seen_in="composed: the call in OpenRLHF's trainer, figures and keys of a validated result in a public guide",
)
