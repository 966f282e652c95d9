"""inhibit, quiet_hours and maintenance in alerts.yaml: what they mean, and every mistake with its place."""

import textwrap
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest
from tests.mute.samples import matchers

from oomwatch.core.mute.inhibition import Inhibition
from oomwatch.core.mute.stages import Windows
from oomwatch.core.mute.times import Maintenance, QuietHours
from oomwatch.rulefile import RuleFileError, parse_rules

GRAVER = Inhibition(matchers('severity="critical"'), matchers('severity=~"warning|info"'), ("node", "gpu", "run"))
LOST = Inhibition(matchers('alert="agent_silent"'), matchers('alert!="agent_silent"'), ("node",))


def windows(section: str) -> Windows:
    return parse_rules("rules: []\nnotify:\n" + textwrap.indent(textwrap.dedent(section), "  ")).notify.windows()


def mistakes(section: str) -> list[tuple[int, int, str]]:
    """Line (1 is the first of the section) and column of each, and what it says."""
    with pytest.raises(RuleFileError) as caught:
        windows(section)
    return [(one.line - 2, one.column, one.message) for one in caught.value.mistakes]


def test_without_a_word_graver_alerts_and_lost_nodes_inhibit() -> None:
    assert parse_rules("rules: []").notify.windows() == Windows(inhibitions=(GRAVER, LOST))
    assert windows("inhibit: []") == Windows()


def test_inhibitions_are_read_as_written() -> None:
    section = """\
        inhibit:
          - source: ['alert="host_lost"']
            target: ['severity=~"warning|info"', node!=login]
            equal: [node]
        """
    source, target = matchers('alert="host_lost"'), matchers('severity=~"warning|info"', "node!=login")
    assert windows(section).inhibitions == (Inhibition(source, target, ("node",)),)


def test_quiet_hours_are_read_as_written_with_or_without_quotation_marks() -> None:
    section = """\
        quiet_hours:
          - {name: night, from: "22:00", to: "07:00", days: [mon, fri], time_zone: Europe/Berlin}
          - {name: noon, from: 12:00, to: 24:00, time_zone: UTC, match: [run=mine]}
        """
    night, noon = windows(section).quiet_hours
    not_critical = matchers('severity!="critical"')
    assert night == QuietHours("night", 1320, 420, frozenset({0, 4}), ZoneInfo("Europe/Berlin"), not_critical)
    assert noon == QuietHours("noon", 720, 1440, frozenset(range(7)), ZoneInfo("UTC"), matchers("run=mine"))


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-12-01T20:00:00+01:00", "2026-12-01T23:30:00+01:00"),
        ('"2026-12-01T20:00:00+01:00"', '"2026-12-01T22:30:00Z"'),
        ("2026-12-01 19:00:00Z", "2026-12-01 22:30:00Z"),
    ],
)
def test_maintenance_is_read_as_written(start: str, end: str) -> None:
    section = f"""\
        maintenance:
          - {{name: rack 7, from: {start}, to: {end}, match: ['node=~"gpu-7.*"']}}
        """
    from_at = datetime(2026, 12, 1, 19, tzinfo=timezone.utc).timestamp()
    (found,) = windows(section).maintenance
    assert type(found.ends_at) is float, "it goes into messages, which know plain numbers only"
    assert found == Maintenance("rack 7", from_at, from_at + 3.5 * 3600, matchers('node=~"gpu-7.*"'))


@pytest.mark.parametrize(
    ("entry", "at", "sentence"),
    [
        ('{name: a, from: "22:00", to: "7", time_zone: UTC}', '"7"', '"7" is no time of day'),
        ('{name: a, from: "25:00", to: "07:00", time_zone: UTC}', '"25', '"25:00" is no time of day'),
        ('{name: a, from: "07:00", to: "07:00", time_zone: UTC}', "{", "the same time"),
        ('{name: a, from: "24:00", to: "07:00", time_zone: UTC}', "{", "from cannot be"),
        ('{name: a, from: "22:00", to: "07:00"}', "{", '"time_zone" is missing'),
        ('{name: a, from: "22:00", to: "07:00", time_zone: Europe/Berln}', "Eur", "did you mean Europe/Berlin?"),
        ('{name: a, from: "22:00", to: "07:00", time_zone: ../etc}', "..", "unknown time zone"),
        ('{name: a, from: "22:00", to: "07:00", time_zone: Europe}', "Eur", "unknown time zone"),
        ('{name: a, from: "22:00", to: "07:00", time_zone: UTC, days: [monday]}', "monday", "expected one of mon"),
        ('{name: a, from: "22:00", to: "07:00", time_zone: UTC, days: []}', "{", "days is empty"),
        ('{name: a, from: "22:00", to: "07:00", time_zone: UTC, match: [nod=x]}', "nod=", 'no label "nod"'),
        ('{name: a, from: "22:00", to: "07:00", time_zone: UTC, match: [\'node=~"("\']}', "'n", "missing )"),
        ('{name: a, from: "22:00", to: "07:00", form: "22:00", time_zone: UTC}', "form", "did you mean from?"),
    ],
)
def test_a_mistake_in_quiet_hours_is_told_with_its_place(entry: str, at: str, sentence: str) -> None:
    ((line, column, message),) = mistakes("quiet_hours:\n  - " + entry)
    assert (line, column) == (2, len("    - ") + entry.index(at) + 1)
    assert sentence in message


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("{name: a, from: 2026-12-01T20:00:00Z, to: 2026-12-01T19:00:00Z, match: [node=n]}", "later than from"),
        ("{name: a, from: 2026-12-01T20:00:00, to: 2026-12-01T21:00:00Z, match: [node=n]}", "of which time zone"),
        ("{name: a, from: 2026-12-01T20:00:00Z, to: '9999-12-31T23:59:59-14:00', match: [node=n]}", "of the years"),
        ("{name: a, from: '0001-01-01T00:00:00+14:00', to: 2026-12-01T21:00:00Z, match: [node=n]}", "of the years"),
        ("{name: a, from: tomorrow, to: 2026-12-01T21:00:00Z, match: [node=n]}", "is no moment"),
        ("{name: a, from: 2026-12-01T20:00:00Z, to: 2026-12-01T21:00:00Z, match: []}", "match is empty"),
        ("{name: a, from: 2026-12-01T20:00:00Z, to: 2026-12-01T21:00:00Z}", '"match" is missing'),
        ("{name: a, from: 2026-12-01T20:00:00Z, to: 2026-12-01T21:00:00Z, match: [7]}", "expected a text"),
    ],
)
def test_a_mistake_in_a_maintenance_window_is_told_with_its_place(entry: str, sentence: str) -> None:
    found = mistakes("maintenance:\n  - " + entry)
    assert [line for line, _, _ in found] == [2]
    assert sentence in found[0][2]


def test_a_mistake_in_an_inhibition_is_told_with_its_place() -> None:
    section = """\
        inhibit:
          - {source: ['severity="critical"'], target: [severity=], equal: [nod]}
          - {source: [], target: [severity=info]}
        """
    told = mistakes(section)
    assert [(line, column) for line, column, _ in told] == [(2, 7), (3, 7)]
    assert 'no label "nod"' in told[0][2]
    assert "at least one matcher" in told[1][2]
