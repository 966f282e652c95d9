"""Numbers as logs print them, made into bytes and floats that fit the wire's bounds; what does not fit is None."""

import math
import re

# Bounded, so that a line of digits costs no more than another; repr() of a float has 17.
NUMBER = r"-?\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?"
SIZE_UNIT = r"(?:bytes|[KMGT]i?B|[KMGT])"
GIB = 1024**3
_LARGEST = 2**53  # wire.Bytes: what a browser can count without loss
# verl, torch, Ray and vLLM all divide by 1024, whatever they print after the number.
_FACTORS = {"b": 1, "k": 1024, "m": 1024**2, "g": GIB, "t": 1024**4}
_WRAPPED = re.compile(r"(?:np|numpy|torch)\.\w+\((.*)\)$|tensor\((.*)\)$")


def byte_count(number: str | float | None, unit: str = "GiB") -> int | None:
    """Bytes of "412.75", "MiB". None for what is missing, negative or beyond any memory."""
    value = number_of(number)
    if value is None:
        return None
    exact = value * _FACTORS[unit[0].lower()]
    return round(exact) if 0 <= exact <= _LARGEST else None


def number_of(raw: object) -> float | None:
    """A finite float of what a metric's value looked like: 2, "1e-06", "np.float64(0.5)". nan and inf are None."""
    if isinstance(raw, str) and raw[-1:] == ")" and (wrapped := _WRAPPED.match(raw)):
        raw = (wrapped[1] or wrapped[2] or "").partition(",")[0]
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return None
    try:
        value = float(raw)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def count_of(raw: str | None) -> int | None:
    """A whole number from digits; None where it is missing or beyond the wire's bound."""
    if not raw or len(raw) > 16:  # noqa: PLR2004 - 2**53 has 16 digits
        return None
    value = int(raw)
    return value if value <= _LARGEST else None
