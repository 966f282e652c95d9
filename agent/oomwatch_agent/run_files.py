"""Files of a run that its driver's environment and working folder tell of, as far as they may be read here."""

import os
from pathlib import Path

from oomwatch import wire
from oomwatch_agent.hang_guard import HangGuard
from oomwatch_agent.hydra import config_in, folders_of
from oomwatch_agent.model_files import Here
from oomwatch_agent.who.environ import Environments
from oomwatch_agent.who.identify import Environment

_LIMIT_SECONDS = 0.5


class RunFiles:
    """Looks at processes of this machine, with a limit: /proc blocks while a process is stuck in the kernel."""

    def __init__(self, root: Path = Path("/"), environment: Environment | None = None) -> None:
        self._proc = root / "proc"
        self._environment = environment or Environments(root)
        self._guard: HangGuard[int, Path | None] = HangGuard(_LIMIT_SECONDS)

    def metrics_of(self, pid: int) -> Path | None:
        """The file that verl's "file" logger of this process writes its metrics to, where it was told one."""
        named = (self._environment(pid) or {}).get("VERL_FILE_LOGGER_PATH")
        return self._seen_from_here(pid, Path(named)) if named else None

    def config_of(self, pid: int) -> wire.Config | None:
        """The configuration in Hydra's folder, of a process that works where Hydra put it."""
        working = self._guard.ask([pid], self._working_folder).get(pid)
        if working is None:
            return None
        here = Here((Path("/"), self._proc / str(pid) / "root"), self._environment(pid))
        return next((config for folder in folders_of(working) if (config := config_in(folder, here))), None)

    def _working_folder(self, pid: int) -> Path | None:
        try:
            return self._seen_from_here(pid, Path(os.readlink(self._proc / str(pid) / "cwd")))  # noqa: PTH115
        except OSError:
            return None

    def _seen_from_here(self, pid: int, path: Path) -> Path | None:
        """A process in a container has another root than the agent."""
        if not path.is_absolute():
            working = self._guard.ask([pid], self._working_folder).get(pid)
            return working / path if working else None
        candidates = (path, self._proc / str(pid) / "root" / path.relative_to("/"))
        return next((candidate for candidate in candidates if os.path.exists(candidate)), None)  # noqa: PTH110 - never raises
