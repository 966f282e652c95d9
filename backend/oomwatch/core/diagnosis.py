"""What stands behind an alert that fires: which kind of trouble its condition is about, then the causes."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from oomwatch import wire
from oomwatch.core.cause import rank
from oomwatch.core.conditions import Condition
from oomwatch.core.evidence import Topic, gather
from oomwatch.core.fleet import Fleet
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import Verdict

Diagnose: TypeAlias = Callable[[Fleet, Subject, Condition, Verdict, float], tuple[wire.Cause, ...]]

# What a condition watches, by its metric, else by the event that it saw, else by its kind: what that is about. What is
# not here (an agent that is silent, a GPU that is lost) has no cause in the memory.
TOPICS: dict[str, Topic] = {
    "gpu_used_ratio": "device",
    "torch_reserved_ratio": "device",
    "device_oom": "device",
    "forecast": "device",
    "worst_case": "device",
    "residue": "device",
    "retries": "device",
    "fragmentation": "device",
    "imbalance": "device",
    "regression": "device",
    "host_memory_ratio": "host",
    "host_oom": "host",
    "host_forecast": "host",
    "host_disk_ratio": "disk",
    "host_shm_ratio": "disk",
    "disk_forecast": "disk",
    "disk_full": "disk",
    "shm_small": "disk",
    "rollout_seconds": "speed",
    "kv_pressure": "speed",
    "lengths": "speed",
    "reshard_cycles": "switch",
    "reshard_step_ratio": "switch",
}


class Watched(NamedTuple):
    name: str
    topic: Topic | None


def watched_by(condition: Condition, verdict: Verdict) -> Watched:
    """What made a condition true, and what that is about."""
    tag = str(condition.__struct_config__.tag)
    names = (getattr(condition, "metric", None), verdict.facts.get("event"), getattr(condition, "of", None), tag)
    name = next((one for one in names if isinstance(one, str) and one in TOPICS), tag)
    return Watched(name, TOPICS.get(name))


def diagnose(
    fleet: Fleet, subject: Subject, condition: Condition, verdict: Verdict, now: float
) -> tuple[wire.Cause, ...]:
    """The causes of what a condition has just judged, most likely first; empty where none can be told."""
    watched = watched_by(condition, verdict)
    if watched.topic is None:
        return ()
    return rank(gather(fleet, subject, watched.topic, watched.name, verdict, now))
