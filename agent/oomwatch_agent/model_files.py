"""The sizes of a run's models: from the config.json beside their weights, or in the Hugging Face cache.

Only a file of that name is opened, where the run's configuration says that its model is, and only what
`logs/model_keys.py` allows of it leaves the node.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch_agent.hang_guard import HangGuard
from oomwatch_agent.logs.config_keys import Values
from oomwatch_agent.logs.model_keys import ModelPaths, public_name, told_of

_FILE = "config.json"
_MOST_BYTES = 256 * 1024  # those of published models have 1 to 40 thousand
_MOST_CHARS = 1000  # of a path
_LIMIT_SECONDS = 1.0  # models lie on network disks, and logs wait meanwhile; asked once for a configuration


class Here(NamedTuple):
    """Whose files and environment count: those of the run's process where it is known, else the agent's own."""

    roots: tuple[Path, ...] = (Path("/"),)  # a process in a container has another
    environ: Mapping[str, str] | None = None  # None: the agent's


def with_models(config: wire.Config, paths: ModelPaths, here: Here | None = None) -> wire.Config:
    """The same configuration with what may be told of its models, as far as it is found in time."""
    place = here or Here()
    named = [path for path in paths if path and len(path) <= _MOST_CHARS]
    sizes = HangGuard[str, Values](_LIMIT_SECONDS).ask(named, lambda path: _sizes(path, place))
    actor, critic = (_told(path, sizes) for path in paths)
    return msgspec.structs.replace(config, model=actor, critic_model=critic)


def _told(path: str | None, sizes: Mapping[str, Values]) -> Values:
    if path is None:
        return {}
    name = public_name(path[-_MOST_CHARS:])
    named: Values = {"name": name[: wire.NAME_CHARS_MAX]} if name else {}
    return named | sizes.get(path, {})


def _sizes(path: str, here: Here) -> Values:
    for folder in _folders(path, here):
        if found := told_of(_read(folder / _FILE)):
            return found
    return {}


def _folders(path: str, here: Here) -> Iterator[Path]:
    """Where the model may be: the path itself, else the snapshots of the hub's model of that name, the newest first."""
    environ = os.environ if here.environ is None else here.environ
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - never raises
    own = home + path[1:] if path.startswith("~/") else path
    for root in here.roots:
        if own.startswith("/"):
            yield root / own.lstrip("/")
        elif "://" not in path:
            yield from _snapshots(root / _cache(environ, home).lstrip("/"), path)


def _cache(environ: Mapping[str, str], home: str) -> str:
    """The hub's cache, as huggingface_hub finds it."""
    above = environ.get("HF_HOME") or f"{environ.get('XDG_CACHE_HOME') or home + '/.cache'}/huggingface"
    return environ.get("HF_HUB_CACHE") or f"{above}/hub"


def _snapshots(cache: Path, name: str) -> list[Path]:
    try:
        found = list((cache / f"models--{name.replace('/', '--')}" / "snapshots").iterdir())
        return sorted(found, key=lambda folder: folder.stat().st_mtime, reverse=True)
    except (OSError, ValueError):
        return []


def _read(path: Path) -> Mapping[str, object]:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        content = json.loads(text) if len(text) <= _MOST_BYTES else None
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
