"""Sources and overrides to a Reading: verl's defaults, files over them, overrides over those, references followed."""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from oomwatch.doctor.read.apply import Overriding, parsed
from oomwatch.doctor.read.layers import Layer, Placing
from oomwatch.doctor.read.reading import (
    COMMAND_LINE,
    UNTOLD,
    Complaint,
    Input,
    Origin,
    Reading,
    ReadingError,
    Setting,
    Severity,
    Source,
    Unknown,
    Value,
)
from oomwatch.doctor.read.references import References, UnresolvedError
from oomwatch.doctor.read.release import Release, Said, release_of
from oomwatch.doctor.read.sources import layer_of, layer_of_overrides
from oomwatch.doctor.read.tree import Tree
from oomwatch.plan import verlkeys
from oomwatch.plan.verlkeys import Strategy

MOST_SOURCES = 20
MOST_OVERRIDES = 2000
MOST_SETTINGS = 20_000
_MOST_LOOKED_UP = 40  # unknown keys for which the nearest is sought
_VERLS_OWN = re.compile(r"(?:.*[./])?main_ppo(?:\.py)?")
_MUST_BE_TOLD = "actor_rollout_ref.rollout.name"


def read(sources: Sequence[Source], overrides: Sequence[str] = (), version: str | None = None) -> Reading:
    """What a configuration says: files in their order, then overrides of scripts, then `overrides`.

    `version` is verl's, where it is known ("0.9.1", "0.8"). Raises ReadingError where nothing can be read.
    """
    layers = _layers(sources, overrides)
    said = [one for layer in layers for one in _said(layer)]
    release = release_of(layers, said, version)
    tree, missing = _begun(layers, release), tuple(_missing_files(layers, release))
    overriding = _laid_over(tree, layers, release, knows_all=not missing)
    settings, references = _settings(tree, _defaults(release.version, release.strategy).alone)
    untold = _untold(settings, release, sure=not missing and _starts_verl(layers))
    complaints = (
        *release.complaints,
        *(complaint for layer in layers for complaint in layer.complaints),
        *missing,
        *_missing_groups(overriding, release),
        *overriding.complaints,
        *references,
        *untold,
    )
    return Reading(
        inputs=tuple(Input(name=layer.name, kind=layer.kind) for layer in layers),
        settings=settings,
        version=release.version,
        version_from=release.version_from,
        versions=release.versions,
        sharding=release.sharding,
        strategy=release.strategy,
        unknown=tuple(_unknown(settings, release)),
        complaints=complaints,
        has_run=layers[0].has_run,
    )


def _begun(layers: Sequence[Layer], release: Release) -> Tree:
    """What is put over others: verl's defaults, unless they are in a file already."""
    if any(layer.whole for layer in layers):
        return Tree()
    return _defaults(release.version, release.strategy).tree.copy()


def _laid_over(tree: Tree, layers: Sequence[Layer], release: Release, *, knows_all: bool) -> Overriding:
    """Files over the defaults, and what was written behind a command over both."""
    _put_files(tree, layers, release)
    overriding = Overriding(tree, _certainty(layers, release, knows_all=knows_all), _meant(release))
    for layer in layers:
        if not _belongs_to_whole(layer, layers):
            for given in layer.given:
                overriding.put(given)
    return overriding


def _layers(sources: Sequence[Source], overrides: Sequence[str]) -> list[Layer]:
    if len(sources) > MOST_SOURCES:
        raise ReadingError("too_many_sources", sources[MOST_SOURCES].name, most=MOST_SOURCES)
    layers = [layer_of(source) for source in sources]
    if overrides:
        layers.append(layer_of_overrides(overrides))
    if not any(layer.placings or layer.given for layer in layers):
        raise ReadingError("no_settings", layers[0].name if layers else COMMAND_LINE)
    if sum(len(layer.given) for layer in layers) > MOST_OVERRIDES:
        raise ReadingError("too_many_overrides", layers[-1].name, most=MOST_OVERRIDES)
    if sum(len(layer.placings) for layer in layers) > MOST_SETTINGS:
        raise ReadingError("too_many_settings", layers[0].name, most=MOST_SETTINGS)
    return layers


def _said(layer: Layer) -> Iterator[Said]:
    """What a layer says of its keys: those of files are taken for known, and so are overrides that do not add."""
    for placing in layer.placings:
        yield Said(placing.key, str(placing.value), layer.name, placing.origin.line)
    for given in layer.given:
        override = parsed(given)
        if override is not None:
            adds = override.sign == "+" and not isinstance(override.value, list | dict)
            yield Said(override.key, str(override.value), layer.name, given.origin.line, adds=adds)


class _Defaults(NamedTuple):
    """A release's own settings. They are never changed: what is put over others is put over a copy."""

    tree: Tree
    alone: Mapping[str, Setting]  # those that refer to no other, whatever is put over the rest


@functools.lru_cache(maxsize=4)  # people ask again and again of the release that they have
def _defaults(version: str, strategy: Strategy) -> _Defaults:
    tree, origin = Tree(), _default_origin(version)
    for key, value in verlkeys.keys_of(version, strategy).items():
        tree.put(key, value, origin)
    every = (Setting(key=key, value=tree[key].value, origin=origin) for key in tree.leaves())
    return _Defaults(tree, {one.key: one for one in every if _is_alone(one.value)})


def _is_alone(value: Value) -> bool:
    return "${" not in value if isinstance(value, str) else not isinstance(value, list | dict)


def _default_origin(version: str) -> Origin:
    return Origin(kind="default", name=f"verl {version}")


def _put_files(tree: Tree, layers: Sequence[Layer], release: Release) -> None:
    for layer in layers:
        known = _overridden(layer, layers)
        for placing in layer.placings:
            origin = next((known[key] for key in _with_sections(placing.key) if key in known), None)
            if origin is not None:
                _put_default_of(tree, placing, release)
            tree.put(placing.key, placing.value, origin or placing.origin)


def _put_default_of(tree: Tree, placing: Placing, release: Release) -> None:
    """What an override took the place of, in a configuration that holds the outcome alone."""
    defaults = verlkeys.keys_of(release.version, release.strategy)
    if placing.key in defaults:
        tree.put(placing.key, defaults[placing.key], _default_origin(release.version))


def _overridden(layer: Layer, layers: Sequence[Layer]) -> dict[str, Origin]:
    """Keys of Hydra's overrides.yaml beside a config.yaml, which has them in it already."""
    if layer.kind != "hydra_folder":
        return {}
    beside = (given for other in layers if _folder(other) == _folder(layer) for given in other.given)
    return {override.key: given.origin for given in beside if (override := parsed(given)) is not None}


def _belongs_to_whole(layer: Layer, layers: Sequence[Layer]) -> bool:
    folders = {_folder(other) for other in layers if other.kind == "hydra_folder"}
    return layer.kind == "hydra_overrides" and _folder(layer) in folders


def _folder(layer: Layer) -> str:
    return layer.name.replace("\\", "/").rpartition("/")[0]


def _with_sections(key: str) -> Iterator[str]:
    """The key, and the sections that it is in."""
    parts = key.split(".")
    return (".".join(parts[:end]) for end in range(len(parts), 0, -1))


def _settings(tree: Tree, alone: Mapping[str, Setting]) -> tuple[tuple[Setting, ...], list[Complaint]]:
    references, complaints = References(tree), list[Complaint]()
    settings = []
    for key in tree.leaves():
        placed = tree[key]
        if key in alone and alone[key].origin is placed.origin:  # nothing was put over it
            settings.append(alone[key])
            continue
        try:
            value = references.value(key)
        except UnresolvedError as error:
            value = placed.value
            if placed.origin.kind != "default":
                complaints.append(_broken(error, key, placed.origin))
        refers = isinstance(placed.value, str) and "${" in placed.value
        written = placed.value if refers and isinstance(placed.value, str) else None
        settings.append(Setting(key=key, value=value, origin=placed.origin, written=written, shadows=tree.shadows(key)))
    return tuple(settings), complaints


def _untold(settings: Sequence[Setting], release: Release, *, sure: bool) -> Iterator[Complaint]:
    """A setting without which verl stops, unless the release, or the program, is one that has a default for it."""
    found = next((one for one in settings if one.key == _MUST_BE_TOLD and one.value == UNTOLD), None)
    if found is None:
        return
    having = [one for one in release.versions if verlkeys.default_of(found.key, one, release.strategy) != UNTOLD]
    stops = sure and not having
    yield Complaint(
        what="must_be_told" if stops else "perhaps_must_be_told",
        severity="error" if stops else "warning",
        name=found.origin.name,
        values={"key": found.key},
    )


def _broken(error: UnresolvedError, key: str, origin: Origin) -> Complaint:
    severity: Severity = "warning" if error.what in ("environment", "unknown_resolver") else "error"
    values: dict[str, str | int] = {"key": key, "reference": error.reference[:100]}
    return Complaint(what=error.what, severity=severity, name=origin.name, line=origin.line, values=values)


def _certainty(layers: Sequence[Layer], release: Release, *, knows_all: bool) -> Callable[[str], bool]:
    """Whether it is certain that the program has a setting, or has it not.

    Programs of recipes have configurations of their own; and a release that was not told may be another one.
    """
    verls_own, told = _starts_verl(layers), release.version_from == "told"
    return lambda key: knows_all and verls_own and (told or not verlkeys.having(key, release.strategy))


def _meant(release: Release) -> Callable[[str], str | None]:
    """Names the setting that is spelled most like a key, for a number of keys."""
    asked: set[str] = set()

    def nearest(key: str) -> str | None:
        asked.add(key)
        few = len(asked) <= _MOST_LOOKED_UP
        return verlkeys.nearest(key, release.version, release.strategy) if few else None

    return nearest


def _starts_verl(layers: Sequence[Layer]) -> bool:
    """Whether no other program is started than verl's own."""
    return all(layer.program is None or _VERLS_OWN.fullmatch(layer.program) for layer in layers)


def _missing_files(layers: Sequence[Layer], release: Release) -> Iterator[Complaint]:
    """Configurations that are named and are neither here nor verl's own."""
    here = {layer.name.replace("\\", "/").rpartition("/")[2].rpartition(".")[0] for layer in layers}
    for layer in layers:
        for base in layer.bases:
            name = base.removesuffix(".yaml").lstrip("/")
            if name.rpartition("/")[2] not in here and not verlkeys.has_file(name, release.version):
                yield _missing(layer.name, None, base)
        for group, option, line in layer.choices:
            if not _is_verls(group, option, release):
                yield _missing(layer.name, line, f"{group}: {option}")


def _missing_groups(overriding: Overriding, release: Release) -> Iterator[Complaint]:
    for override, given in overriding.choices:
        if not _is_verls(override.key, str(override.value), release):
            yield _missing(given.origin.name, given.origin.line, given.text)


def _missing(name: str, line: int | None, file: str) -> Complaint:
    return Complaint(what="missing_file", severity="warning", name=name, line=line, values={"file": file[:120]})


def _is_verls(group: str, option: str, release: Release) -> bool:
    return verlkeys.has_file(f"{group.partition('@')[0]}/{option}", release.version)


def _unknown(settings: Sequence[Setting], release: Release) -> Iterator[Unknown]:
    found = 0
    other: Strategy = "fsdp" if release.strategy == "megatron" else "megatron"
    for setting in settings:
        key = setting.key
        if setting.origin.kind == "default" or verlkeys.takes(key, release.version, release.strategy):
            continue
        found += 1
        near = verlkeys.nearest(key, release.version, release.strategy) if found <= _MOST_LOOKED_UP else None
        yield Unknown(
            key=key,
            origin=setting.origin,
            nearest=near,
            releases=verlkeys.having(key, release.strategy),
            strategy=other if verlkeys.takes(key, release.version, other) else None,
        )
