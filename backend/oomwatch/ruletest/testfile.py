"""A file of rule tests, read with every mistake in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from yaml import MappingNode, Node, SequenceNode

from oomwatch import wire
from oomwatch.core.conditions.bounds import SIZE_BYTES_MIN
from oomwatch.oserror import with_remedy
from oomwatch.rulefile import FILE_BYTES_MAX
from oomwatch.ruletest.notation import SeriesName, Values
from oomwatch.ruletest.world import LABELS_OF, SERIES
from oomwatch.units import Duration, Quantity, parse_duration, parse_quantity
from oomwatch.yamlread import Mistake, MistakeFoundError, Reader

GIB = 2**30


class TestFileError(ValueError):
    """The file cannot be used. The text lists every mistake with file, line and column."""

    __test__ = False  # pytest takes what is called Test... for one

    def __init__(self, path: Path, mistakes: Sequence[Mistake]) -> None:
        told = sorted(set(mistakes))
        super().__init__("\n".join(f"{path}:{one.line}:{one.column}: {one.message}" for one in told))


class Series(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One input series: `values` at multiples of its interval (the test's, where it has none), the first at 0."""

    series: SeriesName
    values: Values
    interval: Duration | None = None

    def __post_init__(self) -> None:
        if self.interval is not None and self.interval <= 0:
            raise ValueError("interval must be more than 0s")


class TimedEvent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An event, as the wire has it ({kind: device_oom, error: ...}), that is read on a node at a time."""

    at: Duration
    event: wire.EventBody
    node: str = "n"
    run: str | None = None
    pid: int | None = None


class ExpectedAlert(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An alert that must be firing: all its labels with its severity, and as much of its text as is given."""

    exp_labels: dict[str, str | int] = {}
    exp_annotations: dict[str, str] = {}


class Expectation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Exactly these alerts of a rule are firing at a time."""

    eval_time: Duration
    alertname: str
    exp_alerts: tuple[ExpectedAlert, ...] = ()


class RuleTest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One test. `capacity` is that of every card, `run` the one that all works for where labels name no other."""

    name: str = ""
    interval: Duration = Duration(60)
    capacity: Quantity = Quantity(80 * GIB)
    host_memory: Quantity = Quantity(1000 * GIB)
    disk: Quantity = Quantity(1000 * GIB)
    run: str | None = None
    input_series: tuple[Series, ...] = ()
    events: tuple[TimedEvent, ...] = ()
    alert_rule_test: tuple[Expectation, ...]

    def __post_init__(self) -> None:
        if self.interval <= 0:
            raise ValueError("interval must be more than 0s")
        for name in ("capacity", "host_memory", "disk"):
            if not SIZE_BYTES_MIN <= getattr(self, name) <= wire.COUNT_MAX:
                raise ValueError(f"{name}: {getattr(self, name):g} is no size; write for example 80GiB")
        if not self.alert_rule_test:
            raise ValueError("alert_rule_test expects nothing: such a test cannot fail")


class TestFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`evaluation_interval` is promtool's: oomwatch judges as readings come in and every second, whatever it says."""

    __test__ = False

    rule_files: tuple[str, ...]
    tests: tuple[RuleTest, ...]
    evaluation_interval: Duration | None = None


class Read(Struct, frozen=True):
    """A file and where its expectations stand: (line, column) of each, by test and place within it."""

    path: Path
    file: TestFile
    places: tuple[tuple[tuple[int, int], ...], ...]


def read_tests(path: Path) -> Read:
    """The tests of a file. Raises TestFileError with every mistake."""
    reader = Reader(_decode)
    node = reader.compose(_text(path))
    file: TestFile | None = None
    if node is not None:
        try:
            file = reader.value(node, TestFile)
        except MistakeFoundError:
            file = None
        _check_series(reader, node)
    if reader.mistakes or file is None or node is None:
        raise TestFileError(path, reader.mistakes)
    return Read(path, file, _places(node))


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        if len(content) > FILE_BYTES_MAX:
            raise TestFileError(path, [Mistake(1, 1, f"this is too large: more than {FILE_BYTES_MAX} bytes")])
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise TestFileError(path, [Mistake(1, 1, f"cannot be read: {with_remedy(error)}")]) from error


def _decode(kind: type, value: Any) -> Any:
    if kind is Values:
        return Values(str(value))
    if kind is SeriesName:
        return SeriesName(str(value))
    return parse_quantity(value) if kind is Quantity else parse_duration(value)


def _check_series(reader: Reader, node: Node) -> None:
    """Names and labels of series that are not known."""
    for test in _items(_child(node, "tests")):
        for series in _items(_child(test, "input_series")):
            name_node = _child(series, "series")
            if name_node is None:
                continue
            try:
                name = SeriesName(str(name_node.value))
            except ValueError:
                continue  # told already
            if name.name not in SERIES:
                reader.mistake(name_node, f'unknown series "{name.name}"; known are {", ".join(SERIES)}')
                continue
            unknown = [label for label in name.labels if label not in LABELS_OF[SERIES[name.name].scope]]
            if unknown:
                known = ", ".join(LABELS_OF[SERIES[name.name].scope])
                reader.mistake(name_node, f'{name.name} has no label "{unknown[0]}"; it has {known}')


def _places(node: Node) -> tuple[tuple[tuple[int, int], ...], ...]:
    return tuple(
        tuple((one.start_mark.line + 1, one.start_mark.column + 1) for one in _items(_child(test, "alert_rule_test")))
        for test in _items(_child(node, "tests"))
    )


def _child(node: Node, name: str) -> Node | None:
    if not isinstance(node, MappingNode):
        return None
    return next((child for key, child in node.value if key.value == name), None)


def _items(node: Node | None) -> list[Node]:
    return list(node.value) if isinstance(node, SequenceNode) else []
