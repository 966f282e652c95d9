"""JSON with odd values in place of others."""

import json
import random
from collections.abc import Iterator
from typing import Any

ODD: tuple[object, ...] = (
    None, True, -1, 0, 1, 2**53 + 1, 10**400, 1e308, 0.5, 1e12, -0.0, "", "0", "\0", "\ud800", "gpu-07", "r" * 300,
    [], {}, [[]],
)  # fmt: skip


def with_another_value(line: bytes, dice: random.Random) -> bytes | None:
    """A line of JSON with an odd value, or one from elsewhere in it, in some place; None where it is no JSON."""
    try:
        tree = json.loads(line)
    except (ValueError, RecursionError):
        return None
    spots = list(spots_of(tree))
    if not spots:
        return None
    holder, key = dice.choice(spots)
    other, its_key = dice.choice(spots)
    holder[key] = other[its_key] if dice.random() < 0.5 and other is not holder else dice.choice(ODD)
    try:
        return json.dumps(tree, separators=(",", ":")).encode() + b"\n"
    except (ValueError, RecursionError):  # it holds itself now
        return None


def spots_of(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a JSON tree that can be given another value."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(pairs):
        yield tree, key
        yield from spots_of(value)
