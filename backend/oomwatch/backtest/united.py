"""Several logs of one run as one: what one repeats of another is told once. Pure."""

from collections.abc import Iterator, Sequence

import msgspec

from oomwatch import wire
from oomwatch.backtest.logs import Log, Told

_ENDINGS = (wire.DeviceOom, wire.HostOom)  # of a process that told nothing else: what the run ended with


def united(logs: Sequence[Log]) -> list[Told]:
    """Several logs of one run as one, in order. What one repeats of another is told once.

    The log with the most steps leads; what stands only in another (a rank's own file) goes to the step in which its
    process printed it, told by how often its lines have come round.
    """
    main = max(logs, key=lambda log: (log.steps, len(log.told)))
    told = list(_without_echoes(main.told))
    for log in logs:
        if log is not main:
            told = _with(told, log)
    return told


def _with(told: list[Told], log: Log) -> list[Told]:
    if log.stamped and any(one.stamp is not None for one in told):
        fresh = _without_repetitions(told, log.told)
        return sorted([*told, *fresh], key=lambda one: one.stamp or 0.0)
    told = _with_figures(told, log)
    rest = [one for one in log.told if not isinstance(one.body, wire.Step) or not _has_steps(told)]
    fresh = _without_repetitions(told, rest)
    return _dealt(told, fresh) if fresh else told


def _without_echoes(told: Sequence[Told]) -> Iterator[Told]:
    """Without step lines that follow upon the same step's: two loggers, or two processes, told it."""
    last: int | None = None
    for one in told:
        step = one.body.step if isinstance(one.body, wire.Step) and not one.body.validation_only else None
        if step is None or step != last:
            yield one
        last = step


def _has_steps(told: Sequence[Told]) -> bool:
    return any(isinstance(one.body, wire.Step) for one in told)


def _with_figures(told: Sequence[Told], log: Log) -> list[Told]:
    """Steps filled in with what another log says of the same ones; their order of coming tells resumed ones apart."""
    others: dict[int, list[wire.Step]] = {}
    for one in log.told:
        if isinstance(one.body, wire.Step):
            others.setdefault(one.body.step, []).append(one.body)
    filled = []
    for one in told:
        if isinstance(one.body, wire.Step) and others.get(one.body.step):
            filled.append(one._replace(body=_filled(one.body, others[one.body.step].pop(0))))
        else:
            filled.append(one)
    return filled


def _filled(known: wire.Step, other: wire.Step) -> wire.Step:
    fields = msgspec.structs.asdict(known)
    more = {
        name: value
        for name, value in msgspec.structs.asdict(other).items()
        if fields[name] in (None, {}) and value not in (None, {})
    }
    return msgspec.structs.replace(known, **more) if more else known


def _without_repetitions(told: Sequence[Told], others: Sequence[Told]) -> list[Told]:
    """What of `others` is not in `told`: an event that one process tells once stands once in each log."""
    counts: dict[object, int] = {}
    for one in told:
        counts[_key(one)] = counts.get(_key(one), 0) + 1
    fresh = []
    for one in others:
        left = counts.get(_key(one), 0)
        if left:
            counts[_key(one)] = left - 1
        else:
            fresh.append(one)
    return fresh


def _key(one: Told) -> object:
    """Ray's own files do not say the address; errors may be told by whoever waited for them."""
    if isinstance(one.body, wire.DeviceOom):
        return ("oom", one.origin.pid, one.body.tried_bytes, one.body.allocated_bytes)
    return (one.origin.pid, msgspec.json.encode(one.body))


def _dealt(told: Sequence[Told], fresh: Sequence[Told]) -> list[Told]:
    """Events put to the steps that they belong to: each process' lines come round once a step."""
    rounds: dict[int, list[Told]] = {}
    counts: dict[tuple[str | None, object], int] = {}
    current: dict[str | None, int] = {}
    steps = sum(isinstance(one.body, wire.Step) for one in told)
    for one in fresh:
        point = getattr(one.body, "at_point", None)
        if point is not None:
            seen = (one.writer, point)
            counts[seen] = counts.get(seen, 0) + 1
            current[one.writer] = max(current.get(one.writer, 0), counts[seen] - 1)
        last = current.get(one.writer, steps if isinstance(one.body, _ENDINGS) else 0)
        rounds.setdefault(last, []).append(one)
    dealt: list[Told] = []
    step = 0
    for one in told:
        if isinstance(one.body, wire.Step):
            dealt += rounds.pop(step, [])
            step += 1
        dealt.append(one)
    rest = [one for number in sorted(rounds) for one in rounds[number]]
    return [*dealt, *rest] if steps else [*rest, *dealt]
