"""Values and places as people read them."""

from oomwatch.doctor.read import COMMAND_LINE, Origin
from oomwatch.plan.verlkeys import Default

SHOWN_CHARS_MAX = 60


def place_of(origin: Origin) -> str:
    """ "ppo.yaml:12", "command line", "verl 0.9.1"."""
    return place_in(origin.name, None if origin.kind == "default" else origin.line)


def place_in(name: str, line: int | None) -> str:
    """Words of a command line have numbers too, which nobody counts."""
    return name if line is None or name == COMMAND_LINE else f"{name}:{line}"


def shown(value: Default) -> str:
    """A value as YAML would have it, cut where it is long."""
    if value is None or isinstance(value, bool):
        return {True: "true", False: "false", None: "null"}[value]
    text = str(value)
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[: SHOWN_CHARS_MAX - 1]}…"
