"""Each source to the layer of settings that it brings."""

from collections.abc import Sequence

from oomwatch.doctor.read.launch import read_launch
from oomwatch.doctor.read.layers import Given, Layer, Placing
from oomwatch.doctor.read.printed import read_printed
from oomwatch.doctor.read.reading import COMMAND_LINE, Kind, Origin, ReadingError, Source
from oomwatch.doctor.read.text import MOST_BYTES, Content, content_of
from oomwatch.doctor.read.yamlfile import MOST_CHARS, YamlFile, read_yaml


def layer_of(source: Source) -> Layer:
    """What a source says. Raises ReadingError where nothing of it can be read."""
    content = content_of(source)
    layer = _layer(content, source.name)
    return layer._replace(complaints=(*content.complaints, *layer.complaints), has_run=content.has_run)


def layer_of_overrides(overrides: Sequence[str]) -> Layer:
    """Words of a command line that the shell has taken apart already. Raises ReadingError for too much of them."""
    size = sum(map(len, overrides))
    if size > MOST_BYTES:
        raise ReadingError("too_large", COMMAND_LINE, kilobytes=size // 1000, most_kilobytes=MOST_BYTES // 1000)
    given = tuple(
        Given(text.removeprefix("--"), Origin(kind="override", name=COMMAND_LINE, line=number))
        for number, text in enumerate(overrides, 1)
    )
    return Layer(COMMAND_LINE, "overrides", given=given)


def _layer(content: Content, name: str) -> Layer:
    if content.kind == "printed":
        return Layer(name, "printed", read_printed(content.text, name, content.line), whole=True)
    if content.kind in ("script", "overrides"):
        return read_launch(content.text, name, content.kind)
    if len(content.text) > MOST_CHARS:
        raise ReadingError("too_large", name, kilobytes=len(content.text) // 1000, most_kilobytes=MOST_CHARS // 1000)
    text = content.text.expandtabs(2) if content.kind == "json" else content.text
    return _of_yaml(read_yaml(text, name), name, content.kind)


def _of_yaml(file: YamlFile, name: str, kind: Kind) -> Layer:
    if file.overrides or kind == "hydra_overrides":
        given = tuple(
            Given(str(leaf.value), Origin(kind="override", name=name, line=leaf.line)) for leaf in file.overrides
        )
        return Layer(name, "hydra_overrides", given=given)
    placings = tuple(
        Placing(leaf.key, leaf.value, Origin(kind="file", name=name, line=leaf.line)) for leaf in file.leaves
    )
    bases = tuple(str(leaf.value) for leaf in file.defaults if not leaf.key and leaf.value != "_self_")
    choices = tuple(
        (leaf.key.removeprefix("override ").strip(), str(leaf.value), leaf.line) for leaf in file.defaults if leaf.key
    )
    whole = kind == "hydra_folder"
    return Layer(name, kind, placings, whole=whole, bases=bases, choices=choices, complaints=file.complaints)
