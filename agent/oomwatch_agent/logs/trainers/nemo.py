"""NeMo-RL: a block of timings a step."""

import re

from oomwatch import wire
from oomwatch_agent.logs.envelope import Record
from oomwatch_agent.logs.gathering import Gathering, Trainer
from oomwatch_agent.logs.units import NUMBER

_STEP = re.compile(r"={5,80} Step (?P<step>\d{1,15})/\d{1,15} ={5,80}$")
_TIMING = re.compile(r"\S{1,4}\s{1,3}Timing:$")
_ROW = re.compile(rf"\s{{1,4}}• (?P<key>[\w ]{{1,60}}): (?P<value>{NUMBER})s(?: \({NUMBER}%\))?$")


def _read(gathering: Gathering, record: Record) -> wire.Step | None:
    if begun := _STEP.match(record.text):
        gathering.step = int(begun["step"])
        return None
    if not gathering.open:
        if _TIMING.match(record.text):
            gathering.begin(record)
        return None
    if not gathering.is_mine(record):
        return None
    if row := _ROW.match(record.text):
        gathering.add(row["key"], row["value"])
        return None
    return gathering.tell()


TRAINER = Trainer(
    name="NeMo-RL",
    gates=("==== Step ", "⏱"),
    names={
        "Total step time": "timing_s/step",
        "generation": "timing_s/gen",
        "exposed_generation": "timing_s/gen",
        "policy_training": "timing_s/update_actor",
        "policy_and_reference_logprobs": "timing_s/old_log_prob",
        "weight_sync": "timing_s/update_weights",
        "checkpointing": "timing_s/save_checkpoint",
    },
    read=_read,
    example=(
        "========================= Step 3/100 =========================",
        "⏱️  Timing:",
        "  • Total step time: 66.55s",
        "  • exposed_generation: 32.52s (48.9%)",
        "  • policy_training: 25.05s (37.6%)",
        "  • weight_sync: 0.13s (0.2%)",
        "",
        "▶ Preparing batch...",
    ),
    seen_in="NVIDIA-NeMo/RL pull request 1052, shortened; the head line from NeMo-RL's code",
)
