"""/api/v1/alerts/.../acknowledge: somebody takes care of an alert, or does no more."""

from collections.abc import Sequence

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from oomwatch.service.attention import Attention, NotFiringError
from oomwatch.service.silences import matchers_of, name_of, note_of
from oomwatch.web.answers import RefusedError, answer, refusal
from oomwatch.web.bodies import body_of, takes
from oomwatch.web.describe import Language, returns
from oomwatch.web.parts import Parts, parts_of
from oomwatch.web.rows import Acknowledged, AlertRow, alert_row

router = APIRouter(prefix="/api/v1")


class CareOf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who takes care, and what they want to say about it."""

    by: str
    note: str | None = None


class Several(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of these alerts, by their ids, or of every one that fires and meets all of these matchers."""

    ids: tuple[str, ...] = ()
    match: tuple[str, ...] | None = None

    def meant(self, attention: Attention) -> Sequence[str]:
        """The ids of those that fire. Raises ValueError."""
        if (self.match is None) == (not self.ids):
            raise ValueError("give either ids or match")
        return attention.firing(self.ids) if self.match is None else attention.matching(matchers_of(self.match))


class CareOfSeveral(Several, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who takes care of them, and what they want to say about it."""

    by: str
    note: str | None = None


@router.post("/alerts/acknowledge", responses=returns(Acknowledged, 400, 413), openapi_extra=takes(CareOfSeveral))
async def acknowledge_several(request: Request) -> Response:
    """Take care of several alerts; answers with the ids of those that fire."""
    parts, told = parts_of(request), await body_of(request, CareOfSeveral)
    try:
        by, note, found = name_of(told.by, "by"), note_of(told.note), told.meant(parts.service.attention)
    except ValueError as error:
        raise RefusedError(400, str(error)) from error
    parts.service.attention.acknowledge(found, by=by, note=note)
    await parts.journal.tell_now()
    return answer(Acknowledged(alerts=tuple(found)))


@router.post("/alerts/unacknowledge", responses=returns(Acknowledged, 400, 413), openapi_extra=takes(Several))
async def unacknowledge_several(request: Request) -> Response:
    """Nobody takes care of these alerts any more; answers with the ids of those that somebody took care of."""
    parts, told = parts_of(request), await body_of(request, Several)
    attention = parts.service.attention
    try:
        found = attention.taken(told.meant(attention))
    except ValueError as error:
        raise RefusedError(400, str(error)) from error
    attention.acknowledge(found, by=None)
    await parts.journal.tell_now()
    return answer(Acknowledged(alerts=tuple(found)))


@router.post(
    "/alerts/{alert_id}/acknowledge", responses=returns(AlertRow, 400, 404, 409, 413), openapi_extra=takes(CareOf)
)
async def acknowledge(request: Request, alert_id: str, lang: Language = "en") -> Response:
    """Take care of an alert: it is neither repeated nor passed on to others any more, but its changes are told."""
    told = await body_of(request, CareOf)
    try:
        by, note = name_of(told.by, "by"), note_of(told.note)
    except ValueError as error:
        raise RefusedError(400, str(error)) from error
    return await _acknowledged(parts_of(request), alert_id, by, note, lang)


@router.delete("/alerts/{alert_id}/acknowledge", responses=returns(AlertRow, 404, 409))
async def unacknowledge(request: Request, alert_id: str, lang: Language = "en") -> Response:
    """Nobody takes care of an alert any more."""
    return await _acknowledged(parts_of(request), alert_id, None, None, lang)


async def _acknowledged(parts: Parts, alert_id: str, by: str | None, note: str | None, lang: Language) -> Response:
    try:
        parts.service.attention.acknowledge([alert_id], by=by, note=note)
    except NotFiringError as error:
        is_known = parts.service.board.find(alert_id) or await parts.read(parts.store.alert, alert_id)
        return refusal(409, str(error)) if is_known else refusal(404, f'there is no alert "{alert_id}"')
    await parts.journal.tell_now()
    found = parts.service.board.find(alert_id)
    return answer(alert_row(found, lang)) if found else refusal(404, f'there is no alert "{alert_id}" any more')
