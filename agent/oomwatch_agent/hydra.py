"""What Hydra left of a run's configuration: `.hydra/config.yaml`, and `.hydra/overrides.yaml` where that is missing."""

from collections.abc import Iterator
from pathlib import Path

from oomwatch import wire, yamltext
from oomwatch_agent.logs.config_text import config_of
from oomwatch_agent.logs.model_keys import model_paths
from oomwatch_agent.model_files import Here, with_models

FOLDER = ".hydra"
_MOST_BYTES = 1024 * 1024  # verl's has 30 thousand
_MOST_OVERRIDES = 2000


def is_hydra_file(path: Path) -> bool:
    """Whether this is one of the files that Hydra writes."""
    return path.parent.name == FOLDER and path.name in ("config.yaml", "overrides.yaml")


def config_beside(path: Path) -> wire.Config | None:
    """The configuration in the `.hydra` folder beside a log, or that the path is in."""
    folder = path.parent if path.parent.name == FOLDER else path.parent / FOLDER
    return config_in(folder)


def config_in(folder: Path, here: Here | None = None) -> wire.Config | None:
    """The memory-relevant settings in a `.hydra` folder; None where there are none that can be read."""
    content = _read(folder / "config.yaml")
    if not isinstance(content, dict):
        overrides = _read(folder / "overrides.yaml")
        content = _nested(overrides) if isinstance(overrides, list) else {}
    config = config_of(content)
    return config and with_models(config, model_paths(content), here)


def folders_of(working: Path) -> Iterator[Path]:
    """Where a program that runs in `working` has its `.hydra`: there, or in the newest of Hydra's dated folders."""
    yield working / FOLDER
    try:
        dated = sorted((working / "outputs").glob(f"20??-??-??/??-??-??/{FOLDER}"))
    except OSError:
        return
    yield from dated[-1:]


def _nested(overrides: list[object]) -> dict[str, object]:
    """ "actor_rollout_ref.rollout.n=8" and its like as a nested mapping."""
    found: dict[str, object] = {}
    for override in overrides[:_MOST_OVERRIDES]:
        key, sign, raw = str(override).lstrip("+~").partition("=")
        if not sign:
            continue
        *above, last = key.split(".")
        level = found
        for name in above:
            below = level.setdefault(name, {})
            level = below if isinstance(below, dict) else {}
        level[last] = _parsed(raw)
    return found


def _read(path: Path) -> object:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        return _parsed(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _parsed(text: str) -> object:
    try:
        return yamltext.load(text)
    except yamltext.YamlTextError:
        return None
