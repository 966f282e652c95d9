"""A configuration with changes: what refers to a changed setting ("${actor_rollout_ref.rollout.n}") follows it."""

import functools
from collections.abc import Mapping, Sequence

from msgspec import structs

from oomwatch import wire
from oomwatch.doctor.read.reading import COMMAND_LINE, Origin, Reading, Setting
from oomwatch.doctor.read.references import References, UnresolvedError
from oomwatch.doctor.read.tree import Tree
from oomwatch.plan.settings import Config

Changes = Mapping[str, wire.ConfigValue]
_BY_HAND = Origin(kind="override", name=COMMAND_LINE)


class Changeable:
    """The settings of a reading, to be looked at with changes."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._base = reading.config
        self._referring = [one for one in reading.settings if one.written is not None]

    def config(self, changes: Changes) -> Config:
        """What is in force with these changes over all else."""
        if not changes:
            return self._base
        tree = self._tree.copy()
        for key, value in changes.items():
            tree.put(key, value, _BY_HAND)
        followed = References(tree)
        others = (one for one in self._may_follow(changes) if one.key not in changes and one.key in tree)
        moved = [after for one in others if (after := _followed(one, followed)).value != one.value]
        by_hand = [Setting(key=key, value=value, origin=_BY_HAND) for key, value in changes.items()]
        return self._with([*moved, *by_hand])

    def _may_follow(self, changes: Changes) -> list[Setting]:
        """The settings that refer to a changed one, or to one that does; by names alone, so there may be too many."""
        found: dict[str, Setting] = {}
        reached = list(changes)
        while reached:
            named = _namings(reached.pop())
            for one in self._referring:
                if one.key not in found and any(name in (one.written or "") for name in named):
                    found[one.key] = one
                    reached.append(one.key)
        return list(found.values())

    def _with(self, settings: Sequence[Setting]) -> Config:
        """The configuration with these settings in place of what it has for their keys, and below them."""
        gone = {one.key for one in settings if one.key in self._base}
        sections = tuple(f"{one.key}." for one in settings if one.key not in gone)
        kept = {
            key: value
            for key, value in self._base.items()
            if key not in gone and not (sections and key.startswith(sections))
        }
        return kept | structs.replace(self._reading, settings=tuple(settings)).config

    @functools.cached_property
    def _tree(self) -> Tree:
        tree = Tree()
        for one in self._reading.settings:
            tree.put(one.key, one.value if one.written is None else one.written, one.origin)
        return tree


def _namings(key: str) -> list[str]:
    """How a reference may name a key: by its last part, or by a section that it is in."""
    parts = key.split(".")
    return [parts[-1], *(".".join(parts[:end]) + "}" for end in range(1, len(parts)))]


def _followed(setting: Setting, followed: References) -> Setting:
    """A setting that refers to others, anew; where that leads nowhere it stays as it was."""
    try:
        return structs.replace(setting, value=followed.value(setting.key))
    except UnresolvedError:
        return setting
