"""Settings put over one another: who is in force at each key, and whom it put out of force."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from oomwatch.doctor.read.reading import Origin, Shadowed, Value


class Placed(NamedTuple):
    value: Value
    origin: Origin


class Tree:
    """A nested configuration by dotted keys. Leaves alone have a place; an empty mapping and null are leaves too."""

    def __init__(self) -> None:
        self._leaves: dict[str, Placed] = {}
        self._sections: Counter[str] = Counter()  # section -> how many leaves it has
        self._past: dict[str, list[Placed]] = {}

    def copy(self) -> "Tree":
        """A tree of its own with the same leaves, which remembers none that were put out of force."""
        other = Tree()
        other._leaves, other._sections = self._leaves.copy(), self._sections.copy()
        return other

    def put(self, key: str, value: Value, origin: Origin) -> None:
        """A value at a key, as OmegaConf merges it: a mapping into what is there, anything else in its place."""
        if isinstance(value, dict) and (value or self._is_section(key)):
            if value and key in self._leaves:
                self._retire(key)
            for name, below in value.items():
                self.put(f"{key}.{name}", below, origin)
            return
        if self._put_into_list(key, value, origin):
            return
        for inner in self._below(key):
            self._retire(inner)
        self._retire_above(key)
        self._retire(key)
        self._leaves[key] = Placed(value, origin)
        self._sections.update(_sections_of(key))

    def remove(self, key: str) -> None:
        for inner in [key, *self._below(key)]:
            self._retire(inner)

    def __contains__(self, key: str) -> bool:
        return key in self._leaves or self._sections[key] > 0

    def __getitem__(self, key: str) -> Placed:
        """The leaf at a key. Raises KeyError."""
        return self._leaves[key]

    def get(self, key: str) -> Placed | None:
        return self._leaves.get(key)

    def leaves(self) -> list[str]:
        """The keys of all leaves, in alphabetical order."""
        return sorted(self._leaves)

    def shadows(self, key: str) -> tuple[Shadowed, ...]:
        """What was at a leaf before, the latest first."""
        return tuple(Shadowed(value=old.value, origin=old.origin) for old in reversed(self._past.get(key, ())))

    def nested(self, key: str, value_of: Callable[[str], Value]) -> dict[str, Value]:
        """The section at a key; `value_of` is asked what each of its leaves is. Raises KeyError where there is none."""
        found: dict[str, Any] = {}
        for inner in self._below(key):
            *sections, last = inner.removeprefix(f"{key}.").split(".")
            level = found
            for section in sections:
                level = level.setdefault(section, {})
            level[last] = value_of(inner)
        if not found:
            raise KeyError(key)
        return found

    def _is_section(self, key: str) -> bool:
        leaf = self._leaves.get(key)
        return isinstance(leaf.value, dict) if leaf else key in self

    def _below(self, key: str) -> list[str]:
        start = f"{key}."
        return [one for one in self._leaves if one.startswith(start)] if self._sections[key] > 0 else []

    def _retire(self, key: str) -> None:
        old = self._leaves.pop(key, None)
        if old is not None:
            self._past.setdefault(key, []).append(old)
            self._sections.subtract(_sections_of(key))

    def _retire_above(self, key: str) -> None:
        """A leaf that becomes a section: the empty mapping, or the null, that was there."""
        for section in _sections_of(key):
            self._retire(section)

    def _put_into_list(self, key: str, value: Value, origin: Origin) -> bool:
        """ "trainer.logger.0" is the first of a list."""
        above, _, last = key.rpartition(".")
        old = self._leaves.get(above)
        if old is None or not isinstance(old.value, list) or not last.isdecimal() or int(last) >= len(old.value):
            return False
        self._past.setdefault(above, []).append(old)
        self._leaves[above] = Placed([*old.value[: int(last)], value, *old.value[int(last) + 1 :]], origin)
        return True


def _sections_of(key: str) -> list[str]:
    """The sections that a key is in, the outermost first."""
    parts = key.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]
