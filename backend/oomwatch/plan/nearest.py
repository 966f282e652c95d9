"""The nearest values that a rule of divisibility admits: one below and one above, the nearer first."""

from collections.abc import Callable

FAR = 4096  # how far a value is looked for: beyond it nobody would call it near


def nearest(value: int, passes: Callable[[int], bool], *, least: int = 1) -> tuple[int, ...]:
    """The nearest value at or below and the nearest above that pass; () where none is near."""
    below = next((one for one in range(value - 1, max(least, value - FAR) - 1, -1) if passes(one)), None)
    above = next((one for one in range(max(least, value + 1), value + FAR) if passes(one)), None)
    found = [one for one in (below, above) if one is not None]
    return tuple(sorted(found, key=lambda one: abs(one - value)))


def multiples(value: int, of: int) -> tuple[int, ...]:
    return nearest(value, lambda one: one % of == 0)


def divisors(value: int, of: int) -> tuple[int, ...]:
    return nearest(value, lambda one: of % one == 0)
