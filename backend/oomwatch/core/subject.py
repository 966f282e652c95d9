"""What a rule judges, what can make it true, and what a warning can be about."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Scope = Literal["gpu", "node", "run"]
Channel = Literal["device", "host", "disk"]  # what can run full, and so what a warning can be about
Topic = Literal["device", "host", "disk", "speed", "switch"]  # what an alert is about, and so where its causes lie
# What can make a condition true: a sample's readings, its figures of torch or of engines, that a GPU answers otherwise
# than as ever, that a minute of readings is over, an event, that a step is over, or that time has passed.
News = Literal["readings", "torch", "engines", "status", "blocks", "events", "steps", "time"]


class Subject(NamedTuple):
    """What a rule judges: a GPU, a node or a run. Equal subjects are the same one whatever run is on it."""

    scope: Scope
    name: str  # node or run
    gpu: str = ""


def subject_of(labels: Mapping[str, str]) -> Subject:
    """What an alert is about, by its labels."""
    if "gpu" in labels:
        return Subject("gpu", labels["node"], labels["gpu"])
    if "node" in labels:
        return Subject("node", labels["node"])
    return Subject("run", labels.get("run", ""))
