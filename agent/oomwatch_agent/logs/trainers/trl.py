"""TRL, and ms-swift on the same base: one printed dict a step."""

import re

from oomwatch import wire
from oomwatch_agent.logs.envelope import Record
from oomwatch_agent.logs.gathering import Gathering, Trainer, pairs
from oomwatch_agent.logs.trainers.lengths import LENGTHS

_LINE = re.compile(r"\{'(?:loss|eps)': .{0,8000}'epoch': .{0,400}\}$")
_PROGRESS = re.compile(r"(?P<step>\d{1,12})/\d{1,12}$")


def _read(gathering: Gathering, record: Record) -> wire.Step | None:
    """TRL prints no number with the metrics (ms-swift, on the same base, does): they are counted."""
    if not _LINE.match(record.text):
        return None
    gathering.metrics = pairs(record.text)
    progress = _PROGRESS.match(str(gathering.metrics.get("global_step/max_steps", "")))
    return gathering.tell(int(progress["step"]) if progress else gathering.count + 1)


TRAINER = Trainer(
    name="TRL",
    gates=("'epoch':",),
    names={**LENGTHS, "step_time": "timing_s/step"},
    read=_read,
    example=(
        (
            "{'loss': 0.0, 'grad_norm': 0.08656957000494003, 'learning_rate': 6.916666666666667e-06, "
            "'completion_length': 232.825, 'rewards/format_reward2': 1.0, 'reward': 1.7171093285083772, "
            "'reward_std': 0.5700982138514519, 'kl': 0.0005371240986278281, 'epoch': 0.31}"
        ),
    ),
    seen_in="huggingface/trl issue 3452, shortened; ms-swift's keys in modelscope/ms-swift issue 5571",
)
