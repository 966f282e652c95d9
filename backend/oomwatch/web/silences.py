"""/api/v1/silences: nobody is sent certain alerts for a time."""

import secrets
from collections.abc import Sequence
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.core.mute.matcher import labels_of, matches, matches_everything
from oomwatch.service.silences import Wish, check_room, matchers_of, silence_of
from oomwatch.store.store import Store
from oomwatch.web.answers import RefusedError, answer, refusal
from oomwatch.web.bodies import body_of, takes
from oomwatch.web.describe import Language, returns
from oomwatch.web.parts import Parts, parts_of
from oomwatch.web.rows import Hidden, Preview, SilenceRow, alert_row, silence_row

TIME_MAX = 1e12  # as in wire.UnixSeconds
DAY_SECONDS = 86_400.0
LATELY_SECONDS = 7 * DAY_SECONDS

Seconds = Annotated[float, Query(ge=0, le=TIME_MAX, allow_inf_nan=False)]
router = APIRouter(prefix="/api/v1/silences")


class WhichAlerts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Matchers, all of which an alert has to meet."""

    match: tuple[str, ...]


@router.get("", responses=returns(list[SilenceRow], 400, 503))
async def silences(
    request: Request,
    *,
    since: Annotated[Seconds | None, Query(description="leave out what was over by then; 7 days ago")] = None,
) -> Response:
    """Silences in force, yet to come, and over lately, the one that ends first at the beginning."""
    parts = parts_of(request)
    now = parts.service.clock()
    stored = await parts.read(parts.store.silences, now - LATELY_SECONDS if since is None else since)
    return answer([silence_row(one, now) for one in stored])


@router.post("", status_code=201, responses=returns(SilenceRow, 400, 413, 503, status=201), openapi_extra=takes(Wish))
async def add_silence(request: Request) -> Response:
    """Silence alerts for a time, from now or from a moment to come. It takes effect at once."""
    parts, wish = parts_of(request), await body_of(request, Wish)
    now = parts.service.clock()
    try:
        silence = silence_of(wish, now, secrets.token_hex(8))
        check_room([*parts.service.attention.silences(), silence])
    except ValueError as error:
        raise RefusedError(400, str(error)) from error
    await _put(parts, silence)
    return answer(silence_row(silence, now), 201)


@router.delete("/{silence_id}", responses=returns(SilenceRow, 404, 503))
async def end_silence(request: Request, silence_id: str) -> Response:
    """End a silence now, or call off one that is yet to come."""
    parts = parts_of(request)
    now = parts.service.clock()
    stored = await parts.read(parts.store.silences, now)  # another server may have been told of it a moment ago
    found = next((one for one in stored if one.id == silence_id), None)
    if found is None:
        return refusal(404, f'there is no silence "{silence_id}" in force or yet to come')
    ended = msgspec.structs.replace(found, starts_at=min(found.starts_at, now), ends_at=now)
    await _put(parts, ended)
    return answer(silence_row(ended, now))


async def _put(parts: Parts, silence: wire.Silence) -> None:
    """Stored first: what is told outlives the server."""
    await parts.write(parts.store.keep_silences, [silence])
    parts.service.attention.put_silences([silence])
    if parts.cluster is not None:
        parts.cluster.replica.nudge()
    await parts.journal.tell_now()


@router.post("/preview", responses=returns(Preview, 400, 413, 503), openapi_extra=takes(WhichAlerts))
async def preview(request: Request, lang: Language = "en") -> Response:
    """What a silence with these matchers would hide: of what fires now, and of what fired in the last days."""
    parts, which = parts_of(request), await body_of(request, WhichAlerts)
    try:
        matchers = matchers_of(which.match)
    except ValueError as error:
        raise RefusedError(400, str(error)) from error
    firing = [one for one in parts.service.open_alerts() if one.state == "firing"]
    hidden = [one for one in firing if matches(matchers, labels_of(one))]
    day, week = await parts.read(_hidden_lately, parts.store, matchers, parts.service.clock())
    return answer(
        Preview(
            alerts=tuple([alert_row(one, lang) for one in hidden]),
            last_24h=day,
            last_7d=week,
            warnings=tuple(_warnings(matchers, hidden, week, lang)),
        )
    )


def _hidden_lately(store: Store, matchers: Sequence[wire.Matcher], now: float) -> tuple[Hidden, Hidden]:
    """Of a day and of a week. It blocks. Raises StoreError."""
    fired = store.fired(now - LATELY_SECONDS)
    told = [(one.at, one.severity, matches(matchers, labels_of(one))) for one in fired]
    day = [one for one in told if one[0] >= now - DAY_SECONDS]
    return _counted(day), _counted(told)


def _counted(told: Sequence[tuple[float, wire.Severity, bool]]) -> Hidden:
    hidden = [severity for _, severity, is_hidden in told if is_hidden]
    return Hidden(fired=len(told), hidden=len(hidden), hidden_critical=hidden.count("critical"))


def _warnings(
    matchers: Sequence[wire.Matcher], hidden: Sequence[wire.Alert], week: Hidden, lang: wire.Language
) -> list[str]:
    critical = sum(one.severity == "critical" for one in hidden)
    warnings = [say("hides.everything", lang)] if matches_everything(matchers) else []
    warnings += [say("hides.critical", lang, count=critical)] if critical else []
    if week.hidden_critical:
        warnings.append(say("hides.critical_lately", lang, count=week.hidden_critical))
    return warnings
