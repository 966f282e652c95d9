"""The rows of the report, each kind from what it tells of."""

from collections.abc import Iterator, Sequence

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.doctor import result
from oomwatch.doctor.case import Case
from oomwatch.doctor.formulas import formula_in
from oomwatch.doctor.idle import idle_settings
from oomwatch.doctor.outcome import line_of
from oomwatch.doctor.problems import unknown_message
from oomwatch.doctor.read import Origin, Reading, Setting, Shadowed
from oomwatch.doctor.read.words import words_of
from oomwatch.doctor.sources import source_in
from oomwatch.doctor.text import place_in, place_of, shown
from oomwatch.plan import cards
from oomwatch.plan.batches import Batches
from oomwatch.plan.memory import HostEstimate, Largest, Part, PhaseEstimate
from oomwatch.plan.shape import ModelShape
from oomwatch.plan.verlkeys import Default


def origin_of(origin: Origin) -> result.Origin:
    return result.Origin(kind=origin.kind, place=place_of(origin))


def inputs_of(reading: Reading) -> Iterator[result.Input]:
    return (result.Input(name=one.name, kind=one.kind) for one in reading.inputs)


def settings_of(reading: Reading, *, with_defaults: bool) -> Iterator[result.Setting]:
    """Those that somebody set, with what each left without effect."""
    for one in reading.settings:
        if with_defaults or one.origin.kind != "default":
            shadows = tuple(result.Shadow(value=old.value, origin=origin_of(old.origin)) for old in one.shadows)
            yield result.Setting(
                key=one.key, value=one.value, origin=origin_of(one.origin), written=one.written, shadows=shadows
            )


def shadowed_of(case: Case, language: wire.Language) -> Iterator[result.Shadowed]:
    """Values of people that have no effect: another was put over them, or another setting makes them void."""
    idle = {one.key: one.because for one in idle_settings(case)}
    for one in case.reading.settings:
        old = [old for old in one.shadows if old.origin.kind != "default" and old.value != one.value]
        if one.key in idle:
            because = _decisive(case, idle[one.key])
            values = [(one.value, one.origin), *((before.value, before.origin) for before in old)]
            yield from (_void(one.key, value, origin, because, language) for value, origin in values)
        else:
            yield from (_beaten(one, before, language) for before in old)


def _beaten(one: Setting, old: Shadowed, language: wire.Language) -> result.Shadowed:
    place, winner = place_of(old.origin), place_of(one.origin)
    said = {"value": shown(old.value), "place": place, "winner": shown(one.value), "winner_place": winner}
    return result.Shadowed(
        key=one.key,
        value=old.value,
        loses_to=f"{shown(one.value)} ({winner})",
        place=place,
        winner=one.value,
        winner_place=winner,
        message=say("doctor.report.shadowed", language, name=one.key, **said),
    )


def _decisive(case: Case, key: str) -> Setting:
    """The setting that makes others void, as it stands; as verl's own where its configuration has it not."""
    verls_own = Setting(key=key, value=None, origin=Origin(kind="default", name=f"verl {case.reading.version}"))
    return case.reading.setting(key) or verls_own


def _void(key: str, value: Default, origin: Origin, because: Setting, language: wire.Language) -> result.Shadowed:
    place, winner = place_of(origin), place_of(because.origin)
    decides = f"{because.key}={shown(because.value)}"
    return result.Shadowed(
        key=key,
        value=value,
        loses_to=f"{decides} ({winner})",
        place=place,
        winner=because.value,
        winner_place=winner,
        message=say(
            "doctor.report.idle",
            language,
            name=key,
            value=shown(value),
            place=place,
            because=decides,
            because_place=winner,
        ),
    )


def derived_of(batches: Batches) -> dict[str, int | str | None]:
    """Every number that belongs to no single phase."""
    names = (name for name in batches.__struct_fields__ if name not in ("phases", "working"))
    return {name: getattr(batches, name) for name in names}


def working_of(batches: Batches, told: Batches, language: wire.Language) -> Iterator[result.Line]:
    """The arithmetic line by line. `told` is the same of what people set alone: it knows what was assumed."""
    assumed = {(line.name, line.phase): line.assumed for line in told.working}
    for line in batches.working:
        yield result.Line(
            name=line.name,
            phase=line.phase,
            label=say(f"plan.line.{line.name}", language),
            formula=line.formula,
            value=line.value,
            assumed=assumed.get((line.name, line.phase), ()),
            missing=line.missing,
        )


def memory_of(phase: PhaseEstimate, language: wire.Language) -> result.Memory:
    return result.Memory(
        phase=phase.phase,
        low_bytes=phase.low_bytes,
        expected_bytes=phase.expected_bytes,
        high_bytes=phase.high_bytes,
        capacity_bytes=phase.capacity_bytes,
        verdict=phase.verdict,
        label=say(f"phase.{phase.phase}", language),
        margin_bytes=phase.margin_bytes,
        moment=say(f"plan.moment.{phase.moment}", language),
        trouble=say(f"plan.trouble.{phase.trouble}", language) if phase.trouble else None,
        parts=parts_of(phase.parts, language),
    )


def host_of(host: HostEstimate, case: Case, language: wire.Language) -> result.Host:
    return result.Host(
        low_bytes=host.low_bytes,
        expected_bytes=host.expected_bytes,
        high_bytes=host.high_bytes,
        capacity_bytes=case.given.host_bytes,
        verdict=case.host_verdict,
        parts=parts_of(host.parts, language),
    )


def parts_of(parts: Sequence[Part], language: wire.Language) -> tuple[result.Part, ...]:
    """The largest first."""
    return tuple(
        result.Part(
            name=part.name,
            label=say(f"plan.part.{part.name}", language),
            bytes=part.bytes,
            formula=formula_in(language, part.formula),
            source=source_in(language, part.source),
        )
        for part in sorted(parts, key=lambda one: -one.bytes)
    )


def largest_of(case: Case) -> Iterator[result.Largest]:
    """Of every setting; a value that verl would refuse beside the others is none."""
    for one in case.largest():
        fits, at_most = (_allowed(case, one, value) for value in (one.fits, one.at_most))
        yield result.Largest(
            key=one.key,
            value=fits,
            at_most=at_most,
            now=case.value_of(one.key),
            phases=one.phases,
            override=line_of(case, one.key, fits) if fits is not None else None,
        )


def _allowed(case: Case, one: Largest, value: float | None) -> wire.ConfigValue | None:
    """The value, where verl takes it; else the one that is set now, where that fits too."""
    if value is None:
        return None
    if not case.look({one.key: value}).errors <= case.as_it_is.errors:
        return _plain(one.now) if one.now is not None and one.now <= value else None
    return _plain(value)


def _plain(number: float) -> int | float:
    return int(number) if number == int(number) else number


def model_of(shape: ModelShape | None, path: str | None) -> result.Model | None:
    if shape is None:
        return None
    return result.Model(
        name=shape.name, parameters=shape.parameters, source=shape.source, verified=shape.verified, path=path
    )


def card_of(card: cards.Card | None) -> result.Card | None:
    if card is None:
        return None
    return result.Card(
        name=card.name,
        usable_bytes=card.usable_bytes,
        total_bytes=card.total_bytes,
        source=card.source,
        verified=card.verified,
    )


def unknown_of(case: Case, language: wire.Language) -> Iterator[result.Unknown]:
    for one in case.reading.unknown:
        yield result.Unknown(
            key=one.key,
            nearest=one.nearest,
            place=place_of(one.origin),
            releases=one.releases,
            message=unknown_message(case, one, language),
        )


def complaints_of(reading: Reading, language: wire.Language) -> Iterator[result.Complaint]:
    for one in reading.complaints:
        words = words_of(one, language)
        yield result.Complaint(
            severity=one.severity,
            what=one.what,
            place=place_in(one.name, one.line),
            message=words.what,
            remedy=words.remedy,
            suggestion=one.suggestion,
        )
