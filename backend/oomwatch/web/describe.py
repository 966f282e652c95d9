"""OpenAPI's description of the answers, from the types that msgspec encodes."""

from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, Query
from fastapi.openapi.utils import get_openapi

from oomwatch import wire
from oomwatch.access.audit import Deed
from oomwatch.doctor.report import Report
from oomwatch.incident.report import Entry, Incident
from oomwatch.ruleedit.rows import RuleRow
from oomwatch.scorecard import Scorecard
from oomwatch.tryout.result import Tryout
from oomwatch.web.batchrows import BatchesOfRun
from oomwatch.web.doctorrows import CardRow, DoctorFile, ModelRow, TemplateRow, TemplateText
from oomwatch.web.planrows import PlanOfRun
from oomwatch.web.rows import (
    Acknowledged,
    Agent,
    AlertRow,
    AlertStory,
    GpuRow,
    History,
    Me,
    PeaksOfRun,
    Preview,
    SilenceRow,
)
from oomwatch.web.ruledesk import RuleFileShown, RulesTaken
from oomwatch.web.rulenow import RuleNow
from oomwatch.web.spans import AlertSpans
from oomwatch.web.storagewatch import Storage
from oomwatch.web.windowrows import MutingWindows

Language = Annotated[wire.Language, Query(description="language of the texts")]

# Every type that an answer holds, or a question within it.
KINDS = (
    *(wire.Snapshot, wire.RulesChanged, wire.StepPoint, wire.PhaseSpan, wire.ChannelState, GpuRow),
    *(AlertRow, AlertStory, History, PeaksOfRun, PlanOfRun, BatchesOfRun, Agent, Scorecard, Entry, Incident),
    *(Acknowledged, SilenceRow, Preview, Deed, Me),
    *(RuleRow, RuleFileShown, RulesTaken, RuleNow, Tryout),
    *(AlertSpans, MutingWindows, Storage),
    *(Report, ModelRow, CardRow, TemplateRow, TemplateText, DoctorFile),
)

# Who may ask. A server that was given no tokens asks for none.
WHO = {
    "token": {"type": "http", "scheme": "bearer"},
    "session": {"type": "apiKey", "in": "cookie", "name": "oomwatch_token"},
}
EVERYWHERE = (401, 403, 503)  # the guard's, and the crowd's or a database's that does not answer
WITH_A_BODY = (400, 408, 413, 415)  # answers.content_of


def returns(kind: object, *errors: int, status: int = 200, or_else: object = None) -> dict[int | str, dict[str, Any]]:
    """What a route answers with: the one kind or, where there are two, the other."""
    kinds = [kind] if or_else is None else [kind, or_else]
    schemas, _ = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    schema = schemas[0] if or_else is None else {"anyOf": list(schemas)}
    return {status: {"content": {"application/json": {"schema": schema}}}} | refusals(*errors)


def refusals(*errors: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that has nothing, or does not understand."""
    sentence = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    return {
        status: {"description": "what was wrong", "content": {"application/json": {"schema": sentence}}}
        for status in errors
    }


def takes_file(what: str) -> dict[str, Any]:
    """`openapi_extra` of a route whose body is a file of YAML."""
    content = {"application/yaml": {"schema": {"type": "string"}}}
    return {"requestBody": {"required": True, "description": what, "content": content}}


def described(app: FastAPI) -> dict[str, Any]:
    """FastAPI's description with our types, who may ask, and what may be answered whatever is asked."""
    if app.openapi_schema is None:
        told = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        _, schemas = msgspec.json.schema_components(list(KINDS), ref_template="#/components/schemas/{name}")
        told["components"] = {"schemas": schemas, "securitySchemes": WHO}
        told["security"] = [{name: []} for name in WHO]
        for operation in (one for path in told["paths"].values() for one in path.values()):
            _complete(operation)
        app.openapi_schema = told
    return app.openapi_schema


def _complete(operation: dict[str, Any]) -> None:
    """FastAPI says 422 for a wrong question, where api.py answers 400."""
    answers = operation["responses"]
    if "HTTPValidationError" in str(answers.get("422")):
        del answers["422"]
        answers |= _told(400)
    more = (*EVERYWHERE, *(WITH_A_BODY if "requestBody" in operation else ()))
    answers |= {status: answer for status, answer in _told(*more).items() if status not in answers}


def _told(*errors: int) -> dict[str, Any]:
    return {str(status): answer for status, answer in refusals(*errors).items()}
