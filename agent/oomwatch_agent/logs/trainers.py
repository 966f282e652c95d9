"""The step metrics of trainers other than verl, as their consoles show them: over one line, two, or a whole block.

What one step says is gathered from line to line, renamed to verl's keys, and made into a `wire.Step` by `steps`. Each
entry of `TRAINERS` proves itself by its example; `seen_in` says where such lines were found.
"""

import re
from collections.abc import Iterator

from oomwatch import wire
from oomwatch_agent.logs.envelope import Record
from oomwatch_agent.logs.gathering import Gathering, Trainer, pairs
from oomwatch_agent.logs.units import NUMBER

# ------------------------------------------------------------ one line a step

_TRL = re.compile(r"\{'(?:loss|eps)': .{0,8000}'epoch': .{0,400}\}$")
_PROGRESS = re.compile(r"(?P<step>\d{1,12})/\d{1,12}$")


def _read_trl(gathering: Gathering, record: Record) -> wire.Step | None:
    """TRL prints no number with the metrics (ms-swift, on the same base, does): they are counted."""
    if not _TRL.match(record.text):
        return None
    gathering.metrics = pairs(record.text)
    progress = _PROGRESS.match(str(gathering.metrics.get("global_step/max_steps", "")))
    return gathering.tell(int(progress["step"]) if progress else gathering.count + 1)


_OPENRLHF = re.compile(r"(?:✨ |� ?)?Global step (?P<step>\d{1,15}): (?P<metrics>\{.{1,16000}\})$")


def _read_openrlhf(gathering: Gathering, record: Record) -> wire.Step | None:
    if not (match := _OPENRLHF.match(record.text)):
        return None
    gathering.metrics = pairs(match["metrics"])
    return gathering.tell(int(match["step"]))


# ------------------------------------------------------------ two lines a step

_SLIME = re.compile(r"(?P<kind>perf|rollout|step) (?P<step>\d{1,15}): (?P<metrics>\{'.{1,16000}\})$")


def _read_slime(gathering: Gathering, record: Record) -> wire.Step | None:
    """The rollout's figures come from another process and before those of the training, which end the step."""
    if not (match := _SLIME.match(record.text)):
        return None
    step, metrics = int(match["step"]), pairs(match["metrics"])
    if match["kind"] != "perf" or "perf/step_time" not in metrics:
        gathering.keep(step, metrics)
        return None
    gathering.metrics = {**gathering.waiting.pop(step, {}), **metrics}
    return gathering.tell(step)


# ------------------------------------------------------------ a block a step

_SKYRL = re.compile(rf"Finished: '(?P<key>\w{{1,60}})', time cost: (?P<value>{NUMBER})s$")


def _read_skyrl(gathering: Gathering, record: Record) -> wire.Step | None:
    """A line for each timer; the one called 'step' is the last of a step. They are counted: none has a number."""
    if not (match := _SKYRL.match(record.text)):
        return None
    gathering.add(match["key"], match["value"])
    return gathering.tell(gathering.count + 1) if match["key"] == "step" else None


_NEMO_STEP = re.compile(r"={5,80} Step (?P<step>\d{1,15})/\d{1,15} ={5,80}$")
_NEMO_TIMING = re.compile(r"\S{1,4}\s{1,3}Timing:$")
_NEMO_ROW = re.compile(rf"\s{{1,4}}• (?P<key>[\w ]{{1,60}}): (?P<value>{NUMBER})s(?: \({NUMBER}%\))?$")


def _read_nemo(gathering: Gathering, record: Record) -> wire.Step | None:
    if begun := _NEMO_STEP.match(record.text):
        gathering.step = int(begun["step"])
        return None
    if not gathering.open:
        if _NEMO_TIMING.match(record.text):
            gathering.begin(record)
        return None
    if not gathering.is_mine(record):
        return None
    if row := _NEMO_ROW.match(record.text):
        gathering.add(row["key"], row["value"])
        return None
    return gathering.tell()


_AREAL_STEP = re.compile(r"Epoch \d{1,9}/\d{1,9} Step \d{1,9}/\d{1,9} Train step (?P<step>\d{1,15})/\d{1,15} done\.$")
_AREAL_CELL = re.compile(rf"(?P<key>[\w/.\-]{{1,80}}) +│ +(?P<value>{NUMBER})(?= )")


def _read_areal(gathering: Gathering, record: Record) -> wire.Step | None:
    if begun := _AREAL_STEP.match(record.text):
        gathering.begin(record)
        gathering.step = int(begun["step"])
        return None
    if not gathering.is_mine(record):
        return None
    if record.text.startswith("╘"):
        return gathering.tell()
    if record.text.startswith("│"):
        for cell in _AREAL_CELL.finditer(record.text[:4000]):
            gathering.add(cell["key"], cell["value"])
    return None


_EASYR1_STEP = re.compile(r"Step (?P<step>\d{1,15})$")
_EASYR1_ROW = re.compile(rf"(?P<indent> {{0,12}})(?P<key>[\w@.()\-]{{1,60}}):(?: (?P<value>{NUMBER}|\.nan|-?\.inf))?$")


def _read_easyr1(gathering: Gathering, record: Record) -> wire.Step | None:
    """A YAML tree below "Step 5". Any line that is no part of it ends it."""
    row = _EASYR1_ROW.match(record.text) if gathering.is_mine(record) else None
    if row:
        indent = len(row["indent"])
        gathering.path = [level for level in gathering.path if level[0] < indent]
        if row["value"] is None:
            gathering.path.append((indent, row["key"]))
        else:
            gathering.add("/".join([*(name for _, name in gathering.path), row["key"]]), row["value"])
        return None
    if gathering.open and not gathering.is_mine(record):
        return None
    told = gathering.tell() if gathering.open else None
    if begun := _EASYR1_STEP.match(record.text):
        gathering.begin(record)
        gathering.step = int(begun["step"])
    return told


_LENGTHS = {
    "response_length": "response_length/mean",
    "completion_length": "response_length/mean",
    "mean_completion_length": "response_length/mean",
    "completions/mean_length": "response_length/mean",
    "max_completion_length": "response_length/max",
    "completions/max_length": "response_length/max",
    "clipped_completions_ratio": "response_length/clip_ratio",
    "completions/clipped_ratio": "response_length/clip_ratio",
}

TRAINERS = (
    Trainer(
        name="TRL",
        gates=("'epoch':",),
        names={**_LENGTHS, "step_time": "timing_s/step"},
        read=_read_trl,
        example=(
            (
                "{'loss': 0.0, 'grad_norm': 0.08656957000494003, 'learning_rate': 6.916666666666667e-06, "
                "'completion_length': 232.825, 'rewards/format_reward2': 1.0, 'reward': 1.7171093285083772, "
                "'reward_std': 0.5700982138514519, 'kl': 0.0005371240986278281, 'epoch': 0.31}"
            ),
        ),
        seen_in="huggingface/trl issue 3452, shortened; ms-swift's keys in modelscope/ms-swift issue 5571",
    ),
    Trainer(
        name="OpenRLHF",
        gates=("Global step",),
        names={
            **_LENGTHS,
            "timing/generation": "timing_s/gen",
            "timing/ppo_train": "timing_s/update_actor",
            "timing/broadcast": "timing_s/update_weights",
        },
        read=_read_openrlhf,
        example=(
            (
                "(PPOTrainer pid=41) ✨ Global step 1: {'policy_loss': 0.024, 'response_length': 512.5, "
                "'timing/generation': 41.2, 'timing/ppo_train': 29.9, 'timing/broadcast': 1.98}"
            ),
        ),
        seen_in="composed: the call in OpenRLHF's trainer, figures and keys of a validated result in a public guide",
    ),
    Trainer(
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
        read=_read_slime,
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
    ),
    Trainer(
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
        read=_read_skyrl,
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
    ),
    Trainer(
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
        read=_read_nemo,
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
    ),
    Trainer(
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
        read=_read_areal,
        example=(
            "20260616-06:38:13.851 StatsLogger INFO: Epoch 1/5 Step 7/116 Train step 7/580 done.",
            "20260616-06:38:13.851 StatsLogger INFO: Stats (1/1):",
            "╒═══════════════════════════╤════════════╤═════════════════════════╤════════════╕",
            "│ ppo_actor/new_logp/min    │ -1.8766e+01 │ timeperf/rollout        │ 4.1200e+01 │",
            "│ timeperf/train_step       │ 2.9900e+01 │ timeperf/update_weights │ 1.9800e+00 │",
            "╘═══════════════════════════╧════════════╧═════════════════════════╧════════════╛",
        ),
        seen_in="composed: head line from AReaL's StatsLogger, cells as in areal-project/AReaL issue 110",
    ),
    Trainer(
        name="EasyR1",
        gates=("Step ",),
        names={},
        read=_read_easyr1,
        example=(
            "(Runner pid=9) Step 5",
            "(Runner pid=9) perf:",
            "(Runner pid=9)   max_memory_reserved_gb: 61.23",
            "(Runner pid=9) response_length:",
            "(Runner pid=9)   mean: 512.5",
            "(Runner pid=9) timing_s:",
            "(Runner pid=9)   gen: 31.4",
            "(Runner pid=9)   step: 95.2",
            "(Runner pid=9) ",
            "(Runner pid=9) Start validation...",
        ),
        seen_in="composed: EasyR1's ConsoleLogger prints the metrics' tree as YAML",
    ),
)

GATES = tuple(gate for trainer in TRAINERS for gate in trainer.gates)
_ANY_GATE = frozenset(GATES)


class TrainerSteps:
    """The step metrics of every trainer of the table, in one log."""

    def __init__(self) -> None:
        self._gatherings = [Gathering(trainer) for trainer in TRAINERS]

    @property
    def open(self) -> bool:
        """Whether a block has begun, so that lines without any literal matter too."""
        return any(gathering.open for gathering in self._gatherings)

    def note(self, record: Record, gates: list[str]) -> Iterator[wire.Step]:
        """The steps that this line completes: at most one, of any sane log."""
        if _ANY_GATE.isdisjoint(gates) and not self.open:
            return
        for gathering in self._gatherings:
            if step := gathering.note(record, gates):
                yield step

    def flush(self) -> Iterator[wire.Step]:
        """The step of a block that the log ended with."""
        for gathering in self._gatherings:
            if gathering.open and (step := gathering.tell()):
                yield step
