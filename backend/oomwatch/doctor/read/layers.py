"""What a person gave, as changes in the order in which they are put over verl's defaults."""

from typing import NamedTuple

from oomwatch.doctor.read.reading import Complaint, Kind, Origin, Value


class Placing(NamedTuple):
    """A value that a file gives: it is merged, whether the key is known or not."""

    key: str
    value: Value
    origin: Origin


class Given(NamedTuple):
    """An override as it was written."""

    text: str
    origin: Origin
    unresolved: tuple[str, ...] = ()  # variables of the shell that nobody can tell
    doubtful: tuple[str, ...] = ()  # variables that are set in a branch


class Layer(NamedTuple):
    """What one source says."""

    name: str
    kind: Kind
    placings: tuple[Placing, ...] = ()
    given: tuple[Given, ...] = ()
    whole: bool = False  # a resolved configuration: verl's defaults are in it already
    bases: tuple[str, ...] = ()  # configurations that it builds on, by name ("ppo_trainer")
    choices: tuple[tuple[str, str, int | None], ...] = ()  # of groups: name, option, line
    program: str | None = None  # that is started, where it can be told
    complaints: tuple[Complaint, ...] = ()
    has_run: bool = False  # it is of a run that took steps with it
