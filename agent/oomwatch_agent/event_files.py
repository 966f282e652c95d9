"""TensorBoard's event files, for runs that log to nothing else: read by tensorboard itself, which needs no TensorFlow.

The package is an extra, `pip install "oomwatch[tensorboard]"`: an agent beside a trainer that writes such files finds
it in the trainer's environment.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from oomwatch import wire
from oomwatch_agent.logs.steps import step_from

NAME = re.compile(r"events\.out\.tfevents\.")
_MOST_METRICS = 2000
_MISSING = 'it is a TensorBoard file, which needs a package of its own: pip install "oomwatch[tensorboard]"'


class _Tensor(Protocol):
    @property
    def float_val(self) -> Sequence[float]: ...


class _Value(Protocol):
    """tensorboard's Summary.Value, as far as it is used here: the package has no types."""

    tag: str
    simple_value: float
    tensor: _Tensor

    def HasField(self, name: str) -> bool: ...  # noqa: N802 - protobuf's name


class _Summary(Protocol):
    @property
    def value(self) -> Sequence[_Value]: ...


class _Event(Protocol):
    step: int
    summary: _Summary


class _Loader(Protocol):
    def Load(self) -> Iterator[_Event]: ...  # noqa: N802 - tensorboard's name


class EventFile:
    """The steps of one event file, as they are written. A step is told when the first figure of the next one comes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None  # why it cannot be read, and what to do about it
        self._loader: _Loader | None = None
        self._step = -1
        self._metrics: dict[str, object] = {}

    def poll(self) -> Iterator[wire.Step]:
        """The steps that were completed since. Never raises for what may be wrong with a file."""
        try:
            if self._loader is None:
                self._loader = _loader(self.path)
            for event in self._loader.Load():
                yield from self._note(event)
        except ImportError:
            self.problem = f"cannot read {self.path.name}: {_MISSING}"
        except Exception as error:  # whatever the package makes of a damaged file
            self.problem = f"cannot read {self.path.name}: {type(error).__name__}: {error}"

    def rest(self) -> Iterator[wire.Step]:
        """The last step, when no more will come."""
        if self._metrics and (step := step_from(self._step, self._metrics)):
            yield step
        self._metrics = {}

    def _note(self, event: _Event) -> Iterator[wire.Step]:
        step = int(event.step)
        for value in event.summary.value:
            number = _number(value)
            if number is None:
                continue
            if step != self._step:
                yield from self.rest()
                self._step = step
            if len(self._metrics) < _MOST_METRICS:
                self._metrics[str(value.tag)] = number


def _loader(path: Path) -> _Loader:
    from tensorboard.backend.event_processing import event_file_loader  # noqa: PLC0415 - an optional extra

    loader: _Loader = event_file_loader.EventFileLoader(str(path))
    return loader


def _number(value: _Value) -> float | None:
    """A scalar, which the package gives as a tensor of one float, or as "simple_value" in files of before 2021."""
    if value.HasField("simple_value"):
        return float(value.simple_value)
    tensor = value.tensor if value.HasField("tensor") else None
    return float(tensor.float_val[0]) if tensor is not None and len(tensor.float_val) == 1 else None
