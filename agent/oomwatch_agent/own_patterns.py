"""Patterns that a person wrote into the settings, for what no trainer prints but their own.

    patterns:
      - name: my memory print
        contains: "mem[after]"
        match: 'mem\\[after\\] step (?P<step>\\d+) reserved (?P<reserved_gib>[\\d.]+)'

The groups' names say what the numbers are. The expressions run in a helper process: one that takes too long on a line
is ended and switched off, so that it costs the agent a tenth of a second, once.
"""

import logging
import re
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from oomwatch import wire
from oomwatch.oserror import in_words
from oomwatch_agent.logs.pattern import Bodies
from oomwatch_agent.logs.units import byte_count, count_of, number_of

logger = logging.getLogger(__name__)

_SHORTEST_LITERAL = 3
_LONGEST_EXPRESSION = 2000
_MOST_PATTERNS = 50
LONGEST_LINE_CHARS = 8192

# Group -> the metric it is, by verl's names.
_STEP_GROUPS = {
    "step_seconds": "timing_s/step",
    "rollout_seconds": "timing_s/gen",
    "reshard_seconds": "timing_s/reshard",
    "response_length_mean_tokens": "response_length/mean",
    "response_length_max_tokens": "response_length/max",
}
_UNITS = {"_bytes": "bytes", "_mib": "MiB", "_gib": "GiB"}
_MEMORY_FIELDS = ("reserved", "allocated", "device_used", "device_total", "device_free")
_MEMORY_GROUPS = {field + suffix: field for field in _MEMORY_FIELDS for suffix in _UNITS}
GROUPS = ("step", "reshard", *_STEP_GROUPS, *_MEMORY_GROUPS)


class OwnPattern(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of `patterns:`. `contains` is a literal that every such line has; `match` is searched in the record."""

    name: str
    contains: str
    match: str


def mistake_in(patterns: Sequence[OwnPattern]) -> str | None:
    """The first mistake in the entries, as a sentence; None where they can be used."""
    if len(patterns) > _MOST_PATTERNS:
        return f"there are {len(patterns)} patterns; at most {_MOST_PATTERNS} are used"
    names = [pattern.name for pattern in patterns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        return f'two patterns are named "{twice}"; give each its own name'
    return next((f'pattern "{one.name}": {wrong}' for one in patterns if (wrong := _mistake_in(one))), None)


def _mistake_in(pattern: OwnPattern) -> str | None:
    if len(pattern.contains) < _SHORTEST_LITERAL or not pattern.contains.isprintable():
        return f'"contains" must be at least {_SHORTEST_LITERAL} printable characters that stand in every such line'
    if len(pattern.match) > _LONGEST_EXPRESSION:
        return f'"match" is longer than {_LONGEST_EXPRESSION} characters'
    try:
        return _mistake_in_groups(tuple(re.compile(pattern.match).groupindex))
    except (re.error, OverflowError, RecursionError) as error:
        return f'"match" is no regular expression: {error}'


def _mistake_in_groups(groups: tuple[str, ...]) -> str | None:
    unknown = [group for group in groups if group not in GROUPS]
    if unknown:
        return f'nothing is known by the group "{unknown[0]}"; known are {", ".join(GROUPS)}'
    if not groups:
        return f'"match" names no group, as (?P<reserved_gib>[\\d.]+) would; known are {", ".join(GROUPS)}'
    if any(group in _STEP_GROUPS for group in groups) and "step" not in groups:
        return f'a time or a length belongs to a step: "match" also needs a group (?P<step>\\d+), besides {groups[0]}'
    if groups == ("step",):
        return '"match" has only the group "step", which says nothing alone'
    return None


class Searcher(Protocol):
    """Where the expressions run: a `regex_helper.Helper`."""

    def search(self, index: int, text: str) -> dict[str, str]:
        """The named groups of an expression's first match. Raises TimeoutError and OSError."""
        ...

    def close(self) -> None:
        """End it, whatever it does."""
        ...


def _helper(expressions: list[str]) -> Searcher:
    from oomwatch_agent.regex_helper import Helper  # noqa: PLC0415 - most agents have no pattern of their own

    return Helper(expressions)


class _Off(NamedTuple):
    name: str
    why: str


class OwnPatterns:
    """The entries at work. One helper serves all logs, whatever thread reads them."""

    def __init__(self, patterns: Sequence[OwnPattern], make_helper: Callable[[list[str]], Searcher] = _helper) -> None:
        self._patterns = list(patterns)
        self._make_helper = make_helper
        self._helper: Searcher | None = None
        self._lock = threading.Lock()
        self._off: list[_Off] = []
        self.gates = tuple(dict.fromkeys(pattern.contains for pattern in patterns))

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each pattern that was switched off."""
        return tuple(f'the pattern "{off.name}" is switched off: {off.why}' for off in self._off)

    def bodies_of(self, line: str, text: str) -> Bodies:
        """The events of a line, by all the patterns that match its record."""
        found: Bodies = ()
        for index, pattern in enumerate(self._patterns):
            if pattern.contains in line:
                with self._lock:
                    found += _bodies(self._groups(index, pattern, text[:LONGEST_LINE_CHARS]))
        return found

    def close(self) -> None:
        """End the helper."""
        with self._lock:
            self._end_helper()

    def _end_helper(self) -> None:
        if self._helper:
            self._helper.close()
            self._helper = None

    def _groups(self, index: int, pattern: OwnPattern, text: str) -> dict[str, str]:
        if any(off.name == pattern.name for off in self._off):
            return {}
        try:
            if self._helper is None:
                self._helper = self._make_helper([one.match for one in self._patterns])
            return self._helper.search(index, text)
        except TimeoutError:
            why = "it took longer than 100 ms for one line; avoid repeated groups such as (a+)+"
        except OSError as error:
            why = f"its helper process failed ({in_words(error)})"
        self._end_helper()
        self._off.append(_Off(pattern.name, why))
        logger.warning("%s", self.problems[-1])
        return {}


def _bodies(groups: dict[str, str]) -> Bodies:
    if not groups:
        return ()
    from oomwatch_agent.logs.steps import step_from  # noqa: PLC0415 - memory: every agent reads the settings of patterns

    step = count_of(groups["step"]) if groups.get("step", "").isdecimal() else None
    memory = _memory(groups, step)
    bodies: Bodies = (memory,) if memory else ()
    if step is not None and (
        metrics := {_STEP_GROUPS[name]: value for name, value in groups.items() if name in _STEP_GROUPS}
    ):
        told = step_from(step, dict(metrics))
        bodies += (told,) if told else ()
    if "reshard" in groups:
        seconds = number_of(groups.get("reshard_seconds"))
        bodies += (wire.Reshard(marker="resharding_parameters", seconds=seconds if (seconds or 0) >= 0 else None),)
    return bodies


def _memory(groups: dict[str, str], step: int | None) -> wire.TorchMemory | None:
    sizes: dict[str, int] = {}
    for group, field in _MEMORY_GROUPS.items():
        unit = _UNITS["_" + group.rpartition("_")[2]]
        size = byte_count(groups[group], unit) if group in groups else None
        if size is not None:
            sizes[field + "_bytes"] = size
    return msgspec.convert({**sizes, "kind": "torch_memory", "step": step}, wire.TorchMemory) if sizes else None
