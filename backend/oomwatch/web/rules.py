"""/api/v1/rules: the rules, what a changed file would have done, and changing it, where the server is set so."""

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from oomwatch import wire
from oomwatch.core.rule import key_of
from oomwatch.core.watched import watched
from oomwatch.ruleedit.rows import RuleRow, rows_of
from oomwatch.ruleedit.switch import Switch
from oomwatch.rulefile import FILE_BYTES_MAX
from oomwatch.tryout.result import Tryout
from oomwatch.web.answers import answer, content_of, refusal
from oomwatch.web.describe import returns, takes_file
from oomwatch.web.parts import parts_of
from oomwatch.web.paths import ALERT
from oomwatch.web.ruledesk import RuleFileShown, RulesTaken
from oomwatch.web.rulenow import RuleNow, rule_as_of
from oomwatch.web.ruleparts import RuleParts
from oomwatch.web.tryouts import ClientGoneError, Question

HOURS_MAX = 24.0 * 31
BUDGET_SECONDS_MAX = 600.0
SHOWN_MAX = 1000  # subjects of a rule
NAME_CHARS_MAX = wire.NAME_CHARS_MAX

Name = Annotated[str | None, Query(min_length=1, max_length=NAME_CHARS_MAX)]
Hours = Annotated[float, Query(gt=0, le=HOURS_MAX, allow_inf_nan=False, description="how far back")]
Budget = Annotated[float, Query(ge=1, le=BUDGET_SECONDS_MAX, allow_inf_nan=False, description="seconds it may take")]
Severity = Annotated[wire.Severity | None, Query(description="without it all of the alert's")]
router = APIRouter(prefix="/api/v1/rules")


def rule_parts(request: Request) -> RuleParts:
    parts = parts_of(request).rules
    if parts is None:
        raise RuntimeError("the server was put together without what its rules need")
    return parts


@router.get("/all", responses=returns(list[RuleRow]))
async def every_rule(request: Request) -> Response:
    """The rules in force and those that are off, with how many alerts of each fire now."""
    service = parts_of(request).service
    firing = Counter(key_of(one) for one in service.open_alerts() if one.state == "firing")
    return answer(rows_of(service.engine.rules, dict(firing)))


@router.get(f"/{ALERT}/now", responses=returns(RuleNow, 400, 404))
async def rule_now(
    request: Request, alert: str, *, severity: Severity = None, limit: Annotated[int, Query(ge=1, le=SHOWN_MAX)] = 8
) -> Response:
    """What a rule sees now: where it is so, and of the rest those that are nearest to it."""
    service = parts_of(request).service
    rules = service.engine.rules
    rule = next((one for one in rules.rules if one.alert == alert and severity in (None, one.severity)), None)
    if rule is None:
        return refusal(404, f'there is no rule "{alert}"' + (f" of severity {severity}" if severity else ""))
    now = service.clock()
    return answer(rule_as_of(rule, watched(service.engine.fleet, rules, rule, now), now, limit))


@router.get("/file", responses=returns(RuleFileShown, 409))
async def rule_file(request: Request) -> Response:
    """The rule file's text without its secrets, and its digest."""
    shown = await rule_parts(request).desk.read()
    return _tagged(answer(shown), shown.digest)


@router.put(
    "/file",
    responses=returns(RulesTaken, 400, 403, 409, 412, 413, 428, or_else=Tryout),
    openapi_extra=takes_file("a rule file"),
)
async def put_rule_file(
    request: Request,
    *,
    if_match: Annotated[str | None, Header(description="the digest that GET gave")] = None,
    try_: Annotated[bool, Query(alias="try", description="say what it would have done, and change nothing")] = False,
) -> Response:
    """Take a changed file, which is the request's body: all of it is in force at once, or nothing is changed."""
    content = await content_of(request, FILE_BYTES_MAX, "a rule file cannot be")
    if try_:
        return await _tried(request, content, Question())
    taken = await rule_parts(request).desk.put(content, if_match)
    return _tagged(answer(taken), taken.digest)


@router.post("/try", responses=returns(Tryout, 400, 409, 413, 503), openapi_extra=takes_file("a rule file"))
async def try_rules(
    request: Request,
    *,
    hours: Hours = 24.0,
    node: Name = None,
    run: Name = None,
    budget: Budget = 60.0,
    all_: Annotated[bool, Query(alias="all", description="judge what is the same in both files too")] = False,
    alone: Annotated[bool, Query(description="compare with nothing")] = False,
) -> Response:
    """What a changed file, which is the request's body, would have done with the last hours. Nothing is changed."""
    question = Question(hours=hours, node=node, run=run, budget_seconds=budget, judge_all=all_, alone=alone)
    return await _tried(request, await content_of(request, FILE_BYTES_MAX, "a rule file cannot be"), question)


@router.post(f"/{ALERT}/enable", responses=returns(RulesTaken, 403, 404, 409))
async def enable(
    request: Request, alert: str, *, severity: Severity = None, node: Name = None, run: Name = None
) -> Response:
    """Switch a rule on, everywhere or for the nodes and runs that match."""
    return await _switched(request, Switch(alert, enabled=True, severity=severity, node=node, run=run))


@router.post(f"/{ALERT}/disable", responses=returns(RulesTaken, 403, 404, 409))
async def disable(
    request: Request, alert: str, *, severity: Severity = None, node: Name = None, run: Name = None
) -> Response:
    """Switch a rule off, everywhere or for the nodes and runs that match."""
    return await _switched(request, Switch(alert, enabled=False, severity=severity, node=node, run=run))


async def _switched(request: Request, switch: Switch) -> Response:
    taken = await rule_parts(request).desk.switch(switch)
    return _tagged(answer(taken), taken.digest)


async def _tried(request: Request, content: bytes, question: Question) -> Response:
    parts = rule_parts(request)
    try:
        with parts.tryouts.turn():
            text = await parts.desk.whole(content)
            return answer(await parts.tryouts.attempt(text, question, request.is_disconnected))
    except ClientGoneError:
        return Response(status_code=499)  # as nginx says it; nobody reads it


def _tagged(response: Response, digest: str) -> Response:
    response.headers["ETag"] = f'"{digest}"'
    return response
