"""slime: a line of the rollout and a line of the training, which together are a step."""

import re

from oomwatch import wire
from oomwatch_agent.logs.envelope import Record
from oomwatch_agent.logs.gathering import Gathering, Trainer, pairs

_LINE = re.compile(r"(?P<kind>perf|rollout|step) (?P<step>\d{1,15}): (?P<metrics>\{'.{1,16000}\})$")


def _read(gathering: Gathering, record: Record) -> wire.Step | None:
    """The rollout's figures come from another process and before those of the training, which end the step."""
    if not (match := _LINE.match(record.text)):
        return None
    step, metrics = int(match["step"]), pairs(match["metrics"])
    if match["kind"] != "perf" or "perf/step_time" not in metrics:
        gathering.keep(step, metrics)
        return None
    gathering.metrics = {**gathering.waiting.pop(step, {}), **metrics}
    return gathering.tell(step)


TRAINER = Trainer(
    name="slime",
    gates=("'perf/", "'rollout/", "'train/"),
    names={
        "perf/rollout_time": "timing_s/gen",
        "perf/step_time": "timing_s/step",
        "perf/log_probs_time": "timing_s/old_log_prob",
        "perf/ref_log_probs_time": "timing_s/ref",
        "perf/actor_train_time": "timing_s/update_actor",
        "perf/update_weights_time": "timing_s/update_weights",
        "rollout/response_len/mean": "response_length/mean",
        "rollout/response_len/max": "response_length/max",
        "rollout/truncated_ratio": "response_length/clip_ratio",
    },
    read=_read,
    example=(
        (
            "(RolloutManager pid=1805485) [2026-04-15 07:57:53] rollout.py:1193 - perf 2: "
            "{'rollout/response_len/mean': 2773.71484375, 'rollout/response_len/max': 4096, "
            "'rollout/truncated_ratio': 0.46484375, "
            "'perf/rollout_time': 371.1796889305115}"
        ),
        (
            "(MegatronTrainRayActor pid=38610) [2026-01-05 12:20:29] train_metric_utils.py:44 - perf 2: "
            "{'perf/update_weights_time': 0.335, 'perf/train_wait_time': 11.33, 'perf/ref_log_probs_time': 1.40, "
            "'perf/log_probs_time': 0.10, 'perf/actor_train_time': 1.02, 'perf/step_time': 14.182998418807983}"
        ),
    ),
    seen_in="THUDM/slime issue 1837 (rollout) and pull request 1102 (training), shortened and set to one step",
)
