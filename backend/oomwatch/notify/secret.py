"""Values that must not be seen: they print as "(secret)" wherever they end up."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from oomwatch import options
from oomwatch.oserror import with_remedy

FILE_BYTES_MAX = 65_536


class Secret:
    """A text that is given away only to who asks for it by name. repr, str and format show "(secret)"."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "(secret)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")


def find_secret(
    given: Secret | None, variable: str | None, path: str | None, *, environ: Mapping[str, str], place: str
) -> Secret:
    """The secret itself, or what its environment variable or file holds. Raises SettingError that names `place`.

    NotHereError of what is not here, which may be where the server runs.
    """
    if given is not None:
        return given
    if variable is not None:
        text = environ.get(variable, "").strip()
        if not text:
            raise options.NotHereError(
                f"{place}: the environment variable {variable} is not set; export it, or use a file"
            )
        return Secret(text)
    return Secret(_read(path or "", place))


def kept_elsewhere(section: msgspec.Struct, environ: Mapping[str, str], place: str) -> tuple[Secret, ...]:
    """What the environment variables and files of a section hold now. Raises SettingError as find_secret does."""
    given = {name: value for name in section.__struct_fields__ if (value := getattr(section, name)) is not None}
    variables = [value for name, value in given.items() if name.endswith("_env")]
    paths = [value for name, value in given.items() if name.endswith("_file")]
    return (
        *(find_secret(None, variable, None, environ=environ, place=place) for variable in variables),
        *(find_secret(None, None, path, environ=environ, place=place) for path in paths),
    )


def _read(path: str, place: str) -> str:
    """No pipe, whose end may never come, and no file without an end: the server waits for it."""
    if Path(path).exists() and not Path(path).is_file():
        raise options.SettingError(f"{place}: {path} is no ordinary file")
    try:
        with Path(path).open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        text = content.decode().strip()
    except (OSError, ValueError) as error:  # no text, or no name of a file
        raise options.NotHereError(f"{place}: cannot read {path}: {with_remedy(error)}") from error
    if len(content) > FILE_BYTES_MAX:
        raise options.SettingError(f"{place}: {path} holds no secret: it is longer than {FILE_BYTES_MAX} bytes")
    if not text:
        raise options.SettingError(f"{place}: the file {path} is empty")
    return text
