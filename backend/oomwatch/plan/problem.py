"""What is wrong with a configuration, as a value: words come from the catalogue, by the name of the check."""

from typing import Literal

import msgspec
from msgspec import Struct

from oomwatch import wire

Severity = Literal["error", "warning", "info"]


class Problem(Struct, frozen=True, kw_only=True):
    severity: Severity  # "error": verl would stop with it
    key: str  # the setting to change
    check: str  # `plan.check.<check>` in the catalogue
    numbers: dict[str, wire.ConfigValue] = {}  # what the words name
    verl_says: str | None = None  # the message that verl would stop with; None where it stops without words
    valid: tuple[int, ...] = ()  # the nearest values that pass, the nearest first
    suggestion: str | None = None  # one of them as an override line


def error(
    key: str,
    check: str,
    verl_says: str | None = None,
    valid: tuple[int, ...] = (),
    suggestion: str | None = None,
    **numbers: wire.ConfigValue,
) -> Problem:
    """verl would stop with it. Of valid values the nearest is suggested."""
    if suggestion is None and valid:
        suggestion = f"{key}={valid[0]}"
    return Problem(
        severity="error",
        key=key,
        check=check,
        numbers=numbers,
        verl_says=verl_says,
        valid=valid,
        suggestion=suggestion,
    )


def warning(
    key: str, check: str, verl_says: str | None = None, valid: tuple[int, ...] = (), **numbers: wire.ConfigValue
) -> Problem:
    """verl starts with it, and may stop later."""
    return msgspec.structs.replace(error(key, check, verl_says, valid, None, **numbers), severity="warning")
