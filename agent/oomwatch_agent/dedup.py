"""The same line read twice, counted once: a driver's log and Ray's own files hold the same records.

Pure. What is a repetition by its own source (a process may print the same line twice) stays: an event is old news only
where *another* source has already told it as many times within the window.
"""

from collections import OrderedDict, deque
from typing import TypeAlias

import msgspec

from oomwatch import wire
from oomwatch_agent.source import Found

# Ray forwards workers' lines to the driver in batches, late by seconds under load, and by more for what it folds into
# "[repeated 7x across cluster]". An error reaches the driver when somebody waits for the task.
WINDOW_SECONDS = 120.0
_MOST_KEYS = 20_000  # two minutes of a busy node; each costs some 500 bytes
_RICH_STEP_FIELDS = 4  # so many equal numbers are one step line, whatever its run was taken to be called

_Key: TypeAlias = tuple[object, ...]


class Deduplicator:
    """Used by the agent over the findings of all its sources, in the order in which they were read.

    Whoever tells first is kept. Ray's files are the better teller (no colours, nothing folded, pids known), so the
    agent reads them before other logs.
    """

    def __init__(self, window_seconds: float = WINDOW_SECONDS) -> None:
        self._window_seconds = window_seconds
        self._told: OrderedDict[_Key, dict[str, deque[float]]] = OrderedDict()

    def fresh(self, found: Found, now: float) -> bool:
        """Whether this is news. `now`: seconds of any clock that does not jump, the same in every call."""
        key = _key(found)
        if key is None:
            return True
        tellers = self._told.setdefault(key, {})
        self._told.move_to_end(key)
        if len(self._told) > _MOST_KEYS:
            self._told.popitem(last=False)
        for times in tellers.values():
            while times and now - times[0] > self._window_seconds:
                times.popleft()
        mine = tellers.setdefault(found.origin.source, deque())
        mine.append(now)
        told_by_others = max((len(times) for source, times in tellers.items() if times is not mine), default=0)
        return len(mine) > told_by_others


def _key(found: Found) -> _Key | None:
    """What is equal in two readings of one record; None for what no two sources share."""
    body, pid = found.body, found.origin.pid
    if isinstance(body, wire.Step):
        return _step_key(body, found.run)
    if isinstance(body, wire.DeviceOom | wire.TorchMemory):
        # Phase and GPU are what a source could work out, not what the line said.
        return (msgspec.structs.replace(body, phase=None, gpu=None), pid)
    if isinstance(body, wire.HostOom | wire.DiskFull | wire.GpuLost):
        return (body,)  # told by daemons: one and the same line comes with and without a pid
    if isinstance(body, wire.Config):
        told = (*body.model.items(), *body.critic_model.items())  # who knows more of the models is heard, too
        return (wire.Config, *sorted(body.values.items()), *told)
    return (body, pid)


def _step_key(step: wire.Step, run: str | None) -> _Key:
    """A step is its number and its figures. Sources may know the run by different names, figures do not repeat."""
    figures = (step.step_seconds, step.rollout_seconds, step.response_length_mean_tokens, step.tokens_total)
    key = (step.step, *figures, *step.phase_seconds.items())
    told = sum(value is not None for value in (*figures, *step.phase_seconds))
    return key if told >= _RICH_STEP_FIELDS else (*key, run)
