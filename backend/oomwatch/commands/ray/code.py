"""How the agent's code comes to the nodes: it is there, or Ray brings it."""

import importlib.metadata
import importlib.util
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import oomwatch
from oomwatch.commands.ray.within import Seen
from oomwatch.options import SettingError

# What the agent needs of the package oomwatch.
SHARED = ("__init__.py", "wire.py", "options.py", "oserror.py", "units.py", "yamltext.py")
INSTALL = f'install it there ("pip install oomwatch-agent=={oomwatch.__version__}"), or ship it with --code ship'


def is_needed(wanted: str, seen: Iterable[Seen | None]) -> bool:
    """Whether to ship. `wanted`: auto, installed or ship. Raises SettingError where it would have to be there."""
    versions = {one.oomwatch for one in seen if one is not None}
    there = versions == {oomwatch.__version__}
    if wanted == "installed" and not there:
        found = ", ".join(sorted(version or "none" for version in versions)) or "no answer"
        raise SettingError(
            f"--code installed: the nodes have oomwatch {found}, here it is {oomwatch.__version__}; {INSTALL}"
        )
    return wanted == "ship" or not there


def runtime_env(seen: Mapping[str, Seen | None], folder: Path) -> dict[str, Any]:
    """Of Ray: our packages, and what they need where a node lacks it. `folder`: empty, for the copies."""
    env: dict[str, Any] = {"py_modules": [str(path) for path in _packages(folder)]}
    missing = sorted({name for one in seen.values() if one is not None for name in one.missing})
    if missing:
        env["pip"] = [f"{name}=={importlib.metadata.version(name)}" for name in missing]
    return env


def _packages(folder: Path) -> Iterable[Path]:
    own = Path(oomwatch.__file__).parent
    (folder / "oomwatch").mkdir()
    for name in SHARED:
        shutil.copy(own / name, folder / "oomwatch" / name)
    yield folder / "oomwatch"
    for package in ("oomwatch_agent", "oomwatch_probe"):
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            raise SettingError(f"the package {package} is missing; install oomwatch anew")
        origin = Path(found.origin).parent
        yield Path(shutil.copytree(origin, folder / package, ignore=shutil.ignore_patterns("__pycache__")))
