"""Settings of a program from four places, the stronger first: flag, environment, YAML file, default.

A program describes its settings once, as a frozen msgspec struct whose fields carry `option(...)`; the flags, the help
text, the environment variables, the file's keys and the reference page all come from that. Agent and server share this
module and `oomwatch.wire`, and nothing else.

A field `listen` is the flag `--listen`, the variable `OOMWATCH_LISTEN` and the file's key `listen`. A secret field
`token` may also be given as the path of a file that holds it: `--token-file`, `OOMWATCH_TOKEN_FILE`, `token_file`.
"""

import argparse
import functools
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from oomwatch import yamltext
from oomwatch.oserror import with_remedy
from oomwatch.units import Duration, format_duration, parse_duration

ENVIRONMENT_PREFIX = "OOMWATCH_"

T = TypeVar("T", bound=msgspec.Struct)


class SettingError(ValueError):
    """A setting that cannot be used. The text names the place it came from and what would be right."""


class NotHereError(SettingError):
    """What it names, a variable or a file, is not here: where the server runs it may be."""


class Option(NamedTuple):
    """What a field of a settings struct carries in its annotation."""

    help: str
    metavar: str | None = None
    secret: bool = False
    only_in_file: bool = False


def option(
    help: str,  # noqa: A002 - argparse's word
    *,
    metavar: str | None = None,
    secret: bool = False,
    only_in_file: bool = False,
) -> msgspec.Meta:
    """Annotation of a settings field: `listen: Annotated[str, option("address to bind", metavar="HOST:PORT")]`."""
    return msgspec.Meta(description=help, extra={"option": Option(help, metavar, secret, only_in_file)})


class Resolved(msgspec.Struct, Generic[T], frozen=True):
    """The settings, and for each field where its value came from ("flag --listen", "file x.yaml", "default")."""

    settings: T
    origins: dict[str, str]

    def describe(self) -> list[str]:
        """One line a setting, secrets withheld: what a program logs when it starts."""
        lines = []
        for name, (_, spec) in _fields(type(self.settings)).items():
            value = getattr(self.settings, name)
            shown = "(secret)" if spec.secret and value else msgspec.to_builtins(value, enc_hook=_encode)
            lines.append(f"{name} = {shown} ({self.origins[name]})")
        return lines


def add_options(parser: argparse.ArgumentParser, kind: type[msgspec.Struct]) -> None:
    """Give a parser the flags of a settings struct, and `--config FILE`."""
    parser.add_argument(
        "--config", metavar="FILE", help=f"YAML file with settings, by the flags' names ({ENVIRONMENT_PREFIX}CONFIG)"
    )
    for name, (annotation, spec) in _fields(kind).items():
        if spec.only_in_file:
            continue
        flag = "--" + name.replace("_", "-")
        text = f"{spec.help} ({ENVIRONMENT_PREFIX}{name.upper()}; default: {_default_text(kind, name)})".replace(
            "%", "%%"
        )
        if _is_flag(annotation):
            parser.add_argument(flag, dest=name, action=argparse.BooleanOptionalAction, default=None, help=text)
        elif _is_list(annotation):
            parser.add_argument(flag, dest=name, action="append", metavar=spec.metavar, help=text + "; may be repeated")
        else:
            parser.add_argument(flag, dest=name, metavar=spec.metavar, help=text)
        if spec.secret:
            parser.add_argument(
                flag + "-file", dest=name + "_file", metavar="FILE",
                help=f"file that holds the {name} ({ENVIRONMENT_PREFIX}{name.upper()}_FILE)",
            )  # fmt: skip


def resolve(kind: type[T], namespace: argparse.Namespace, environ: Mapping[str, str]) -> Resolved[T]:
    """The settings in force. Raises SettingError that names the place of the first wrong value."""
    config = namespace.config or environ.get(ENVIRONMENT_PREFIX + "CONFIG")
    in_file = _read_file(config, kind) if config else {}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, (annotation, spec) in _fields(kind).items():
        origins[name] = "default"
        for place, raw in _places(name, spec, namespace, environ, in_file, config):
            values[name] = _convert(raw, annotation, place)
            origins[name] = place
            break
    try:
        return Resolved(msgspec.convert(values, kind, dec_hook=_decode), origins)
    except msgspec.ValidationError as error:
        raise SettingError(str(error)) from error


def _places(
    name: str,
    spec: Option,
    namespace: argparse.Namespace,
    environ: Mapping[str, str],
    in_file: Mapping[str, Any],
    config: str | None,
) -> "typing.Iterator[tuple[str, Any]]":
    """Where a value is given, strongest first, each with a name for messages."""
    flag, variable = "--" + name.replace("_", "-"), ENVIRONMENT_PREFIX + name.upper()
    given = getattr(namespace, name, None)
    if given is not None:
        yield f"flag {flag}", given
    if spec.secret and getattr(namespace, name + "_file", None):
        yield f"flag {flag}-file", read_secret(getattr(namespace, name + "_file"), f"flag {flag}-file")
    if environ.get(variable) and not spec.only_in_file:
        yield f"environment {variable}", environ[variable]
    if spec.secret and environ.get(variable + "_FILE"):
        yield f"environment {variable}_FILE", read_secret(environ[variable + "_FILE"], f"environment {variable}_FILE")
    if name in in_file:
        yield f"file {config}", in_file[name]
    if spec.secret and name + "_file" in in_file:
        yield f"file {config}", read_secret(str(in_file[name + "_file"]), f"{config}: {name}_file")


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, tuple[Any, Option]]:
    found: dict[str, tuple[Any, Option]] = {}
    for name, annotation in typing.get_type_hints(kind, include_extras=True).items():
        for meta in getattr(annotation, "__metadata__", ()):
            spec = (getattr(meta, "extra", None) or {}).get("option")
            if spec is not None:
                found[name] = (annotation, spec)
    return found


def _default_text(kind: type[msgspec.Struct], name: str) -> str:
    default = next(field.default for field in msgspec.structs.fields(kind) if field.name == name)
    if default is msgspec.NODEFAULT or default is None or default == ():
        return "none"
    if isinstance(default, Duration):
        return format_duration(default)
    return ", ".join(default) if isinstance(default, tuple) else str(default)


def _bare(annotation: Any) -> Any:
    """The type itself: without its Annotated[...] and without "or None"."""
    if hasattr(annotation, "__metadata__"):
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        return members[0] if len(members) == 1 else annotation
    return annotation


def _is_flag(annotation: Any) -> bool:
    return _bare(annotation) is bool


def _is_list(annotation: Any) -> bool:
    return typing.get_origin(_bare(annotation)) in (tuple, list)


def _is_list_of_words(annotation: Any) -> bool:
    """Whether it is a list of which each is one of a few words."""
    return _is_list(annotation) and typing.get_origin(typing.get_args(_bare(annotation))[0]) is typing.Literal


def _convert(raw: Any, annotation: Any, place: str) -> Any:
    if _is_list_of_words(annotation) and isinstance(raw, list):
        raw = [word for part in raw for word in str(part).split(",")]  # of a flag; no such word has a comma
    if _is_list(annotation) and isinstance(raw, str):
        raw = [part.strip() for part in raw.split(",") if part.strip()]
    try:
        if _bare(annotation) is Duration:
            return parse_duration(raw)
        return msgspec.convert(raw, annotation, strict=False, dec_hook=_decode)
    except (msgspec.ValidationError, ValueError) as error:
        raise SettingError(f"{place}: {error}") from error


def _decode(kind: type, value: Any) -> Any:
    if kind is Duration:
        return parse_duration(value)
    if kind is Path:
        return Path(str(value)).expanduser()
    raise NotImplementedError(f"no reader for {kind}")


def _encode(value: Any) -> str:
    if isinstance(value, Duration):
        return format_duration(value)
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"no spelling for {type(value)}")


def _read_file(path: str, kind: type[msgspec.Struct]) -> dict[str, Any]:
    try:
        content = yamltext.load(Path(path).read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yamltext.YamlTextError) as error:
        raise SettingError(f"cannot read the settings file {path}: {with_remedy(error)}") from error
    if not isinstance(content, dict):
        raise SettingError(f"{path}: expected a mapping of settings, got {type(content).__name__}")
    fields = _fields(kind)
    known = set(fields) | {name + "_file" for name, (_, spec) in fields.items() if spec.secret}
    normal = {str(key).replace("-", "_"): value for key, value in content.items()}
    unknown = sorted(set(normal) - known)
    if unknown:
        raise SettingError(f"{path}: unknown setting {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    return normal


def read_secret(path: str | Path, place: str) -> str:
    """What a file holds, without the white space around it. Raises SettingError, with the place that named the file."""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{place}: cannot read {path}: {with_remedy(error)}") from error
