"""A configuration with changes: what refers to a changed setting ("${actor_rollout_ref.rollout.n}") follows it."""

import functools
from collections.abc import Mapping

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

    def config(self, changes: Changes) -> Config:
        """What is in force with these changes over all else."""
        if not changes:
            return self._reading.config
        tree = self._tree.copy()
        for key, value in changes.items():
            tree.put(key, value, _BY_HAND)
        followed = References(tree)
        told = self._reading.settings
        kept = {one.key: _followed(one, followed) for one in told if one.key in tree and one.key not in changes}
        added = {key: Setting(key=key, value=value, origin=_BY_HAND) for key, value in changes.items()}
        return structs.replace(self._reading, settings=tuple((kept | added).values())).config

    @functools.cached_property
    def _tree(self) -> Tree:
        tree = Tree()
        for one in self._reading.settings:
            tree.put(one.key, one.value if one.written is None else one.written, one.origin)
        return tree


def _followed(setting: Setting, followed: References) -> Setting:
    """A setting that refers to others, anew; where that leads nowhere it stays as it was."""
    if setting.written is None:
        return setting
    try:
        return structs.replace(setting, value=followed.value(setting.key))
    except UnresolvedError:
        return setting
