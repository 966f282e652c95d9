"""How the signals of the rules are called outside. The rules that are written for Prometheus name them too."""

from collections.abc import Mapping

from oomwatch.core.signals import SIGNALS
from oomwatch.core.subject import Scope

# What was exported under its own name before every signal was.
_OTHERWISE = {"gpu_used_bytes": "oomwatch_gpu_memory_used_bytes"}
LABELS_OF: Mapping[Scope, tuple[str, ...]] = {"gpu": ("node", "gpu"), "node": ("node",), "run": ("run",)}


def metric_of(signal: str) -> str:
    """The metric that holds a signal."""
    return _OTHERWISE.get(signal, f"oomwatch_{signal}")


def labels_of(signal: str) -> tuple[str, ...]:
    """Its labels: those of every kind of subject that it is of."""
    return tuple(dict.fromkeys(label for scope in SIGNALS[signal].scopes for label in LABELS_OF[scope]))
