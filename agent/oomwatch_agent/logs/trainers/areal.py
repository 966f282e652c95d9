"""AReaL: a drawn table a step."""

import re

from oomwatch import wire
from oomwatch_agent.logs.envelope import Record
from oomwatch_agent.logs.gathering import Gathering, Trainer
from oomwatch_agent.logs.units import NUMBER

_STEP = re.compile(r"Epoch \d{1,9}/\d{1,9} Step \d{1,9}/\d{1,9} Train step (?P<step>\d{1,15})/\d{1,15} done\.$")
_CELL = re.compile(rf"(?P<key>[\w/.\-]{{1,80}}) +│ +(?P<value>{NUMBER})(?= )")


def _read(gathering: Gathering, record: Record) -> wire.Step | None:
    if begun := _STEP.match(record.text):
        gathering.begin(record)
        gathering.step = int(begun["step"])
        return None
    if not gathering.is_mine(record):
        return None
    if record.text.startswith("╘"):
        return gathering.tell()
    if record.text.startswith("│"):
        for cell in _CELL.finditer(record.text[:4000]):
            gathering.add(cell["key"], cell["value"])
    return None


TRAINER = Trainer(
    name="AReaL",
    gates=("Epoch ",),
    names={
        "timeperf/rollout": "timing_s/gen",
        "timeperf/train_step": "timing_s/update_actor",
        "timeperf/recompute_logp": "timing_s/old_log_prob",
        "timeperf/ref_logp": "timing_s/ref",
        "timeperf/compute_advantage": "timing_s/adv",
        "timeperf/update_weights": "timing_s/update_weights",
        "timeperf/save": "timing_s/save_checkpoint",
        "timeperf/eval": "timing_s/testing",
    },
    read=_read,
    example=(
        "20260616-06:38:13.851 StatsLogger INFO: Epoch 1/5 Step 7/116 Train step 7/580 done.",
        "20260616-06:38:13.851 StatsLogger INFO: Stats (1/1):",
        "╒═══════════════════════════╤════════════╤═════════════════════════╤════════════╕",
        "│ ppo_actor/new_logp/min    │ -1.8766e+01 │ timeperf/rollout        │ 4.1200e+01 │",
        "│ timeperf/train_step       │ 2.9900e+01 │ timeperf/update_weights │ 1.9800e+00 │",
        "╘═══════════════════════════╧════════════╧═════════════════════════╧════════════╛",
    ),
    seen_in="composed: head line from AReaL's StatsLogger, cells as in areal-project/AReaL issue 110",
)
