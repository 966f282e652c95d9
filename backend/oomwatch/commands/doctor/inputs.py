"""What the doctor is given: files, folders and pipes to sources, names of models and cards to what is known of them."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from oomwatch.doctor.read import Source
from oomwatch.doctor.read.text import MOST_LOG_BYTES
from oomwatch.options import SettingError
from oomwatch.oserror import with_remedy
from oomwatch.plan.cards import Card, card_named, card_of_size, known_cards
from oomwatch.plan.models import known_shapes, shape_named, shape_of_hf_config
from oomwatch.plan.shape import ModelShape

_HYDRA = ".hydra"
_HYDRA_FILES = ("config.yaml", "overrides.yaml")
_MODEL_FILE = "config.json"
_MODEL_BYTES_MAX = 4_000_000
_READ_BYTES_MAX = MOST_LOG_BYTES + 1  # one more tells that there is more, and is refused


def divided(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Paths, and the overrides behind them. Raises SettingError for a word that is neither."""
    paths, overrides = [], []
    for word in words:
        if word == "-" or (not _is_override(word) or Path(word).exists()):
            paths.append(word)
        else:
            overrides.append(word)
    return paths, overrides


def _is_override(word: str) -> bool:
    return "=" in word or word.startswith("~")


def sources_of(paths: Sequence[str]) -> list[Source]:
    """The contents of files, of a folder's configuration, and of standard input ("-"). Raises SettingError."""
    return [source for path in paths for source in _sources(path)]


def _sources(path: str) -> Iterator[Source]:
    if path == "-":
        yield Source("-", sys.stdin.buffer.read(_READ_BYTES_MAX))
        return
    place = Path(path)
    if not path:
        raise SettingError("an empty word names nothing to read: is a variable of the shell not set?")
    if not place.is_dir():
        yield _source(place)
        return
    folder = place if place.name == _HYDRA else place / _HYDRA
    files = [folder / name for name in _HYDRA_FILES if (folder / name).is_file()]
    if not files:
        raise SettingError(f"{path} has no {_HYDRA} folder with {' or '.join(_HYDRA_FILES)}: name the file to read")
    for file in files:
        yield _source(file)


def _source(path: Path) -> Source:
    try:
        with path.open("rb") as file:
            return Source(str(path), file.read(_READ_BYTES_MAX))
    except OSError as error:
        hint = "" if path.exists() else "; an override has the form key=value"
        raise SettingError(f"cannot read {path}: {with_remedy(error)}{hint}") from error


def model_of(text: str | None, flag: str) -> ModelShape | None:
    """The model that a flag names, or whose config.json it is. Raises SettingError."""
    if text is None:
        return None
    file = _model_file(text)
    if file is not None:
        return _shape_in(file)
    shape = shape_named(text)
    if shape is None:
        known = ", ".join(one.name for one in known_shapes())
        raise SettingError(f'flag {flag}: "{text}" is no known model and no config.json; known are {known}')
    return shape


def model_beside(path: str | None) -> ModelShape | None:
    """The model in the folder that a configuration names, where it is on this machine; None where it is not."""
    file = _model_file(path) if path and Path(path).expanduser().is_absolute() else None
    return _shape_in(file) if file is not None else None


def _model_file(text: str) -> Path | None:
    place = Path(text).expanduser()
    found = place / _MODEL_FILE if place.is_dir() else place
    return found if found.is_file() else None


def _shape_in(file: Path) -> ModelShape:
    try:
        with file.open("rb") as opened:
            content = opened.read(_MODEL_BYTES_MAX)
        return shape_of_hf_config(msgspec.json.decode(content, type=dict[str, object]))
    except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
        raise SettingError(f"{file}: {with_remedy(error)}") from error


def card_of(text: str | None) -> Card | None:
    """The card that --gpu names: by its name, by its memory, or this machine's. Raises SettingError."""
    if text is None:
        return None
    found = card_named(text) or card_of_size(text)
    if found is None:
        known = ", ".join(card.name for card in known_cards())
        raise SettingError(
            f'flag --gpu: "{text}" is no known card; known are {known}; or give the memory that a program can use of '
            "it with its unit, for example 79GiB"
        )
    return found
