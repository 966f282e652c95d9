"""Steps of trainers other than verl, figure by figure."""

import pytest

from oomwatch import wire
from oomwatch_agent.logs.reader import LineReader
from oomwatch_agent.logs.trainers import TRAINERS

GIB = 1024**3
EXAMPLES = {trainer.name: trainer.example for trainer in TRAINERS}


def steps(*lines: str) -> list[wire.Step]:
    reader = LineReader()
    found = [*(one for line in lines for one in reader.feed(line, 1)), *reader.end()]
    return [one.body for one in found if isinstance(one.body, wire.Step)]


@pytest.mark.parametrize(
    ("trainer", "expected"),
    [
        ("TRL", wire.Step(step=1, response_length_mean_tokens=232.825)),
        (
            "OpenRLHF",
            wire.Step(
                step=1,
                rollout_seconds=41.2,
                reshard_seconds=1.98,
                phase_seconds={"rollout": 41.2, "update_actor": 29.9, "update_weights": 1.98},
                response_length_mean_tokens=512.5,
            ),
        ),
        (
            "slime",
            wire.Step(
                step=2,
                step_seconds=14.182998418807983,
                rollout_seconds=371.1796889305115,
                reshard_seconds=0.335,
                phase_seconds={
                    "rollout": 371.1796889305115,
                    "old_log_prob": 0.1,
                    "ref": 1.4,
                    "update_actor": 1.02,
                    "update_weights": 0.335,
                },
                response_length_mean_tokens=2773.71484375,
                response_length_max_tokens=4096.0,
                response_clip_ratio=0.46484375,
            ),
        ),
        (
            "SkyRL",
            wire.Step(
                step=1,
                step_seconds=101.37,
                rollout_seconds=41.2,
                reshard_seconds=1.98,
                phase_seconds={"rollout": 41.2, "update_weights": 1.98},
            ),
        ),
        (
            "NeMo-RL",
            wire.Step(
                step=3,
                step_seconds=66.55,
                rollout_seconds=32.52,
                reshard_seconds=0.13,
                phase_seconds={"rollout": 32.52, "update_actor": 25.05, "update_weights": 0.13},
            ),
        ),
        (
            "AReaL",
            wire.Step(
                step=7,
                rollout_seconds=41.2,
                reshard_seconds=1.98,
                phase_seconds={"rollout": 41.2, "update_actor": 29.9, "update_weights": 1.98},
            ),
        ),
        (
            "EasyR1",
            wire.Step(
                step=5,
                step_seconds=95.2,
                rollout_seconds=31.4,
                phase_seconds={"rollout": 31.4},
                torch_reserved_peak_bytes=round(61.23 * GIB),
                response_length_mean_tokens=512.5,
            ),
        ),
    ],
)
def test_the_examples_say_what_a_person_reads_in_them(trainer: str, expected: wire.Step) -> None:
    assert steps(*EXAMPLES[trainer]) == [expected]


def test_lines_without_a_number_are_counted() -> None:
    assert [step.step for step in steps(*EXAMPLES["TRL"] * 3)] == [1, 2, 3]


def test_ms_swift_says_its_step_itself() -> None:
    line = "{'loss': -0.0, 'completions/mean_length': 357.5, 'epoch': 0.0, 'global_step/max_steps': '5/3766'}"
    assert [step.step for step in steps(line)] == [5]


def test_a_fine_tuning_without_rollouts_and_its_last_line_are_no_steps() -> None:
    assert steps("{'loss': 1.2, 'learning_rate': 1e-05, 'epoch': 0.1}", "{'train_runtime': 91.2, 'epoch': 1.0}") == []


def test_slimes_rollouts_that_run_ahead_are_kept_for_their_steps() -> None:
    rollout, training = EXAMPLES["slime"]
    ahead = [rollout.replace("perf 2", f"perf {number}") for number in (2, 3)]
    told = steps(*ahead, training, training.replace("perf 2", "perf 3"))
    assert [(step.step, step.rollout_seconds) for step in told] == [(2, 371.1796889305115), (3, 371.1796889305115)]


def test_lines_of_other_processes_do_not_end_a_block() -> None:
    head, *rest = EXAMPLES["EasyR1"]
    assert steps(head, "(WorkerDict pid=4) Something else", *rest) == steps(head, *rest)


def test_steps_that_a_model_writes_in_its_answers_are_none() -> None:
    assert steps("Step 5", "We add:", "  apples: 5", "  pears: 7", "So the total is 12.") == []
    assert steps("⏱️  Timing:", "  • Total time: 5s", "done") == []
