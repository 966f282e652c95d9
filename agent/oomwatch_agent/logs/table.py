"""Every pattern, and which of them a line may hold: a log is searched for their literals before anything is matched."""

import re
from functools import lru_cache

from oomwatch_agent.logs import config_text, device_oom, engines, host_oom, shortage, trainers, verl
from oomwatch_agent.logs.context import CONFIG_GATES, HEADER_GATES, SAMPLE_GATES, TRACEBACK_GATES
from oomwatch_agent.logs.envelope import unwrap
from oomwatch_agent.logs.gates import any_of
from oomwatch_agent.logs.pattern import Bodies, Pattern, first_match

PATTERNS: tuple[Pattern, ...] = (
    *verl.PATTERNS,
    *engines.PATTERNS,
    *device_oom.PATTERNS,
    *host_oom.PATTERNS,
    *shortage.PATTERNS,
)

CONTEXT_GATES = frozenset((*TRACEBACK_GATES, *SAMPLE_GATES, *CONFIG_GATES, *HEADER_GATES))
GATES = tuple(
    dict.fromkeys(
        (*(pattern.gate for pattern in PATTERNS), *sorted(CONTEXT_GATES), *trainers.GATES, config_text.BEGINS)
    )
)
# Literals that ordinary text is full of, and what is looked for in bulk instead.
_INSTEAD = {
    "step:": rb"-(?<=\d -)(?= [\w./@()\-]{1,120}:)",  # step:12 - actor/lr:
    "Step ": rb"S(?=tep \d{1,15}\s{0,4}[\r\n])",  # alone in its line
}
_LITERALS = tuple(gate for gate in GATES if gate not in _INSTEAD)


@lru_cache(maxsize=8)
def any_gate(own: tuple[str, ...] = ()) -> re.Pattern[bytes]:
    """What finds every place of a log that a pattern may match, those with these gates of a person's own among them."""
    return any_of((*_LITERALS, *own), _INSTEAD.values())


def bodies_of(text: str) -> Bodies:
    """What a raw text says on its own, remembered by nobody."""
    gates = [gate for gate in GATES if gate in text]
    return first_match(patterns_of(gates), unwrap(text).text) if gates else ()


_BY_GATES: dict[tuple[str, ...], tuple[Pattern, ...]] = {}


def patterns_of(gates: list[str]) -> tuple[Pattern, ...]:
    """The patterns whose gate is among `gates`, in the order of the table."""
    key = tuple(gates)
    found = _BY_GATES.get(key)
    if found is None:
        found = tuple(pattern for pattern in PATTERNS if pattern.gate in gates)
        if len(_BY_GATES) < 1000:  # noqa: PLR2004 - real logs show a few dozen combinations
            _BY_GATES[key] = found
    return found
