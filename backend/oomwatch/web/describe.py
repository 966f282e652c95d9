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


def returns(kind: object, *errors: int, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """What a route answers with."""
    (schema,), _ = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    return {status: {"content": {"application/json": {"schema": schema}}}} | refusals(*errors)


def refusals(*errors: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that has nothing, or does not understand."""
    sentence = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    return {
        status: {"description": "what was wrong", "content": {"application/json": {"schema": sentence}}}
        for status in errors
    }


def described(app: FastAPI) -> dict[str, Any]:
    """FastAPI's description with our types in it."""
    if app.openapi_schema is None:
        told = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        _, components = msgspec.json.schema_components(list(KINDS), ref_template="#/components/schemas/{name}")
        told.setdefault("components", {}).setdefault("schemas", {}).update(components)
        app.openapi_schema = told
    return app.openapi_schema
