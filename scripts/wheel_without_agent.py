"""Hatchling's hook for oomwatch's wheel: what the wheel of oomwatch-agent brings, this one leaves out and asks for.

The files are left out by pyproject.toml. Here the commands and entry points of the agent are, which pip would write
twice, and the other wheel becomes a dependency, of the same version: the two packages `oomwatch` are one folder.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OF_THE_AGENT = "oomwatch-agent"


class WheelWithoutAgent(BuildHookInterface[Any]):
    """An editable installation is left as it is: it has the agent's folder on its path."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        core = self.metadata.core
        core.scripts.pop(OF_THE_AGENT)
        core.entry_points.clear()
        build_data["dependencies"].append(f"{OF_THE_AGENT}=={self.metadata.version}")
