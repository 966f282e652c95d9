"""What a configuration was read to be: each setting with its value, its origin and what it leaves without effect.

Nothing here is a sentence. `words.py` says it to people.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from oomwatch import wire
from oomwatch.plan.verlkeys import Default, Strategy

Value: TypeAlias = Default  # as JSON has it
Kind = Literal["yaml", "json", "hydra_folder", "hydra_overrides", "printed", "script", "overrides"]
OriginKind = Literal["default", "file", "override", "printed"]
Severity = Literal["error", "warning", "info"]
Sharding = Literal["fsdp", "fsdp2", "megatron"]
VersionFrom = Literal["told", "keys", "assumed"]

UNTOLD = "???"  # what verl's files have where a person must say something
COMMAND_LINE = "command line"  # the name of what `overrides` brings
_LONGEST_TEXT = 200  # of a wire.ConfigValue


class Source(NamedTuple):
    """A file's content, or what came through a pipe."""

    name: str  # as the person gave it, "-" for a pipe
    text: bytes | str


class Origin(Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: OriginKind
    name: str  # of the source; "verl 0.9.1" for a default; COMMAND_LINE
    line: int | None = None  # of the source, from 1; of overrides given by hand, the how-manyth


class Shadowed(Struct, frozen=True, kw_only=True):
    """A value without effect: another one, put over it, won."""

    value: Value
    origin: Origin


class Setting(Struct, frozen=True, kw_only=True, omit_defaults=True):
    key: str
    value: Value  # references resolved as far as they can be
    origin: Origin
    written: str | None = None  # the value as it was written, where it refers to others ("${data.max_prompt_length}")
    shadows: tuple[Shadowed, ...] = ()  # the latest first


class Unknown(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A setting that this release has not, with this way of sharding."""

    key: str
    origin: Origin
    nearest: str | None = None
    releases: tuple[str, ...] = ()  # that have it
    strategy: Strategy | None = None  # the other one, where that one has it in this release


class Complaint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that is not as its writer may think. An "error" is what Hydra or the shell would stop at, or drop."""

    what: str  # doctor.read.WHAT in the catalogue, and doctor.read.WHAT.remedy
    severity: Severity
    name: str  # of the source
    line: int | None = None
    values: dict[str, str | int] = {}  # of the sentences' placeholders
    suggestion: str | None = None  # what to write instead


class Input(Struct, frozen=True, kw_only=True):
    """A source, and what it was taken for."""

    name: str
    kind: Kind


class Reading(Struct, frozen=True, kw_only=True):
    inputs: tuple[Input, ...]
    settings: tuple[Setting, ...]  # by key
    version: str  # the release whose settings were taken: "0.9.1"
    version_from: VersionFrom
    versions: tuple[str, ...]  # the releases that it may be of, of which `version` is the last
    sharding: Sharding
    strategy: Strategy  # whose settings it has
    unknown: tuple[Unknown, ...] = ()
    complaints: tuple[Complaint, ...] = ()
    has_run: bool = False  # the first input is the log of a run that took steps with what it printed

    @property
    def as_printed(self) -> dict[str, wire.ConfigValue]:
        """`config` as it was printed, before what was put over it."""
        return dict(_told((one.key, _printed(one)) for one in self.settings))

    @property
    def config(self) -> dict[str, wire.ConfigValue]:
        """Key -> value, of all settings that have one. Null and "???" are left out; a list is its words with commas."""
        return dict(_told((setting.key, setting.value) for setting in self.settings))

    @property
    def emptied(self) -> dict[str, str | None]:
        """What people set to no value: null, or as text what JSON has no number for ("nan")."""
        return {
            one.key: None if one.value is None else str(one.value)
            for one in self.settings
            if one.origin.kind != "default" and (one.value is None or one.value == UNTOLD or _is_endless(one.value))
        }

    @property
    def model_path(self) -> str | None:
        """The actor's model as it was written: a path or a name. None where nobody named one."""
        return self._path("actor_rollout_ref.model.path")

    @property
    def critic_model_path(self) -> str | None:
        return self._path("critic.model.path")

    def setting(self, key: str) -> Setting | None:
        return next((one for one in self.settings if one.key == key), None)

    def _path(self, key: str) -> str | None:
        found = self.setting(key)
        told = found is not None and not (found.value == VERLS_OWN_MODEL and found.origin.kind == "default")
        return found.value if found is not None and told and isinstance(found.value, str) else None


VERLS_OWN_MODEL = "~/models/deepseek-llm-7b-chat"  # what verl's files name as an example; nobody has it there


class ReadingError(Exception):
    """Nothing can be read; says where, why and what to do. `what` is as in Complaint."""

    def __init__(self, what: str, name: str, line: int | None = None, **values: str | int) -> None:
        super().__init__(what)
        self.what = what
        self.name = name
        self.line = line
        self.values = values

    @property
    def place(self) -> str:
        return self.name if self.line is None else f"{self.name}:{self.line}"


def _told(pairs: Iterator[tuple[str, Value]]) -> Iterator[tuple[str, wire.ConfigValue]]:
    for key, value in pairs:
        if isinstance(value, dict):
            yield from _told((f"{key}.{name}", below) for name, below in value.items())
        elif (plain := _plain(value)) is not None:
            yield key, plain


def _printed(setting: Setting) -> Value:
    if setting.origin.kind == "printed":
        return setting.value
    return next((one.value for one in setting.shadows if one.origin.kind == "printed"), None)


def _is_endless(value: Value) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _plain(value: Value) -> wire.ConfigValue | None:
    if isinstance(value, list):
        words = [one for one in value if isinstance(one, str | int | float)]
        value = ",".join(map(str, words)) or None
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT and value != UNTOLD else None
    return value if isinstance(value, int | float) and not _is_endless(value) else None
