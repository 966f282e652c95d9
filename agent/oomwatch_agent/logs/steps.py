"""A trainer's step metrics, by whatever names its version gave them, made into one `wire.Step`.

Keys come from verl 0.2 to 0.9 (see the tables here and in `phases`). A key that the line lacks stays None.
"""

import re
from collections.abc import Iterable, Mapping

from oomwatch import wire
from oomwatch_agent.logs.phases import STEP_ORDER, TIMING_NAMES
from oomwatch_agent.logs.units import byte_count, number_of

_LARGEST_STEP = 2**53
_LONGEST_SECONDS = 1e12  # the wire's bound
_TRAINING = re.compile(r"(?:[\w\-]+/|(?:actor|critic|perf|response|prompt|rollout|timing|reward|step|global)_)\S*$")
_NO_VALUES = ("nan", "inf", "-inf", None)
_VALIDATION = ("val-", "val/", "val_", "validation/", "test_score", "timing_s/testing", "timing/testing")
_NEUTRAL = ("training/global_step", "training/epoch", "timing_s/step", "timing/step")


_PHASE_KEYS = tuple(
    (phase, tuple(f"{group}/{name}" for name in TIMING_NAMES[phase] for group in ("timing_s", "timing")))
    for phase in STEP_ORDER
)


def step_from(step: int, metrics: Mapping[str, object]) -> wire.Step | None:
    """The step that `metrics` describe; None where they are no step metrics of a trainer."""
    if not 0 <= step <= _LARGEST_STEP or not any(_is_figure(key, raw) for key, raw in metrics.items()):
        return None
    values = _Values(metrics)
    return wire.Step(
        step=step,
        step_seconds=values.seconds("timing_s/step", "perf/time_per_step", "timing/step"),
        rollout_seconds=values.seconds(
            "timing_s/gen", "timing/gen", "timing_s/generate_sequences", "rollout_time_per_step"
        ),
        reshard_seconds=_reshard_seconds(values),
        phase_seconds=_phase_seconds(values),
        torch_reserved_peak_bytes=values.largest_gib("max_memory_reserved_gb"),
        torch_allocated_peak_bytes=values.largest_gib("max_memory_allocated_gb"),
        host_used_bytes=values.largest_gib("cpu_memory_used_gb"),
        response_length_mean_tokens=values.positive("response_length/mean"),
        response_length_max_tokens=values.positive("response_length/max"),
        response_clip_ratio=values.positive("response_length/clip_ratio", at_most=1e6),
        rollout_ms_per_token=values.positive("timing_per_token_ms/gen"),
        tokens_total=values.positive("perf/total_num_tokens"),
        preemptions_mean=values.positive("timing_s/agent_loop/num_preempted/mean"),
        validation_only=_is_validation_only(metrics),
    )


def _is_figure(key: str, raw: object) -> bool:
    """Whether this is a trainer's metric: a name of its kind, and a number (nan is one). Prose has neither."""
    return _TRAINING.match(key) is not None and (number_of(raw) is not None or raw in _NO_VALUES)


class _Values:
    """Metrics under the first of several names that holds a usable number."""

    def __init__(self, metrics: Mapping[str, object]) -> None:
        self._metrics = metrics

    def positive(self, *names: str, at_most: float = wire.FIGURE_MAX) -> float | None:
        for name in names:
            raw = self._metrics.get(name)
            value = None if raw is None else number_of(raw)
            if value is not None and 0 <= value <= at_most:
                return value
        return None

    def seconds(self, *names: str) -> float | None:
        return self.positive(*names, at_most=_LONGEST_SECONDS)

    def largest_gib(self, suffix: str) -> int | None:
        """Bytes of the largest among all keys that end so: every role reports the peak of its own process."""
        found = (byte_count(number_of(raw)) for key, raw in self._metrics.items() if key.endswith(suffix))
        return max((value for value in found if value is not None), default=None)


def _reshard_seconds(values: _Values) -> float | None:
    """Time for the switch between training and rollout. verl 0.8 reports both ways and the wait apart."""
    whole = values.seconds("timing_s/reshard")
    if whole is not None:
        return whole
    ways = [values.seconds(f"timing_s/{name}") for name in ("switch_to_rollout", "switch_to_trainer", "switch_wait")]
    given = [way for way in ways if way is not None]
    return sum(given) if given else values.seconds("timing_s/update_weights", "timing_s/param_sync")


def _phase_seconds(values: _Values) -> dict[str, float]:
    found: dict[str, float] = {}
    for phase, keys in _PHASE_KEYS:
        seconds = values.seconds(*keys)
        if seconds is not None:
            found[phase] = seconds
    return found


def _is_validation_only(keys: Iterable[str]) -> bool:
    """Only validation figures, as in verl's step:0: nothing was trained in it."""
    found = False
    for key in keys:
        if key.startswith(_VALIDATION):
            found = True
        elif key not in _NEUTRAL:
            return False
    return found
