"""Values that must not be seen: they print as "(secret)" wherever they end up."""

from collections.abc import Mapping
from pathlib import Path

from oomwatch import options


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
    """The secret itself, or what its environment variable or file holds. Raises SettingError that names `place`."""
    if given is not None:
        return given
    if variable is not None:
        text = environ.get(variable, "").strip()
        if not text:
            raise options.SettingError(
                f"{place}: the environment variable {variable} is not set; export it, or use a file"
            )
        return Secret(text)
    return Secret(_read(path or "", place))


def _read(path: str, place: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise options.SettingError(f"{place}: cannot read {path}: {error}") from error
    if not text:
        raise options.SettingError(f"{place}: the file {path} is empty")
    return text
