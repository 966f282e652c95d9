"""/api/v1/doctor: what a configuration means, as `oomwatch doctor --json` says it, and what there is to choose from."""

import functools
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from msgspec import Meta, Struct
from starlette.responses import Response

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.doctor.read import ReadingError, Source, read
from oomwatch.doctor.read.words import words_of
from oomwatch.doctor.report import Given, Report, make_report
from oomwatch.doctor.templates import Template, template_named, templates, versions
from oomwatch.doctor.templates.printed import Format, printed
from oomwatch.plan.cards import Card, card_named, card_of_size, known_cards
from oomwatch.plan.models import known_shapes, shape_named, shape_of_hf_config
from oomwatch.plan.shape import ModelShape
from oomwatch.units import parse_quantity
from oomwatch.web.answers import RefusedError, answer, refusal
from oomwatch.web.bodies import body_of, takes
from oomwatch.web.describe import Language, returns
from oomwatch.web.doctorrows import NAME_CHARS_MAX, CardRow, DoctorFile, Mistake, ModelRow, TemplateRow, TemplateText
from oomwatch.web.parts import parts_of
from oomwatch.web.practice import ClientGoneError
from oomwatch.web.runplan import RunPlan, plan_of_run

BYTES_MAX = 4 * 2**20
PASTED = "pasted text"

Name = Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Version = Annotated[str | None, Query(max_length=20, description="verl's, the newest without it")]
router = APIRouter(prefix="/api/v1/doctor")


class Question(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A configuration and where it is to run. What is not told is taken from the configuration, or from the run."""

    text: str | None = None
    files: tuple[DoctorFile, ...] = ()
    overrides: tuple[str, ...] = ()
    run: Name | None = None  # a run that the server knows
    verl: Name | None = None
    gpu: Name | None = None  # "H100", or the memory that a program can use of it: "79GiB"
    gpus: Count | None = None  # of a node
    nodes: Count | None = None
    model: Name | None = None
    model_config: dict[str, Any] | None = None  # a Hugging Face config.json, in place of `model`
    critic_model: Name | None = None
    host_memory: Name | None = None  # of a node: "1000GiB"
    mean_length: Count | None = None  # tokens of prompt and response together
    all_settings: bool = False
    language: wire.Language = "en"


@router.post("", responses=returns(Report, 400, 404, 413, 422, 503), openapi_extra=takes(Question))
async def look_at(request: Request) -> Response:
    """What a configuration means on each GPU, what verl would refuse, whether it fits, and what to set."""
    question, parts = await body_of(request, Question, BYTES_MAX), parts_of(request)
    run = plan_of_run(parts.service, question.run) if question.run is not None else None
    if question.run is not None and run is None:
        return refusal(404, f'there is no run "{question.run}"')
    try:
        return answer(await parts.doctor.see(lambda: report_on(question, run), request.is_disconnected))
    except ClientGoneError:
        return Response(status_code=499)  # as nginx says it; nobody reads it


@router.get("/models", responses=returns(list[ModelRow]))
async def models(_: Request) -> Response:
    """The models that are known by name."""
    return answer([ModelRow(name=one.name, parameters=one.parameters, verified=one.verified) for one in known_shapes()])


@router.get("/cards", responses=returns(list[CardRow]))
async def cards(_: Request) -> Response:
    """The cards that are known by name."""
    return answer(
        [
            CardRow(
                name=one.name,
                usable_bytes=one.usable_bytes,
                total_bytes=one.total_bytes,
                verified=one.verified,
                source=one.source,
            )
            for one in known_cards()
        ]
    )


@router.get("/versions", responses=returns(list[str]))
async def version_list(_: Request) -> Response:
    """The releases of verl that are known, the oldest first."""
    return answer(versions())


@router.get("/templates", responses=returns(list[TemplateRow]))
async def template_list(_: Request, lang: Language = "en") -> Response:
    """The configurations that there are to begin with."""
    return answer([_template_row(one, lang) for one in templates()])


@router.get("/templates/{name}", responses=returns(TemplateText, 404, 503))
async def template_text(
    request: Request,
    name: Annotated[str, Path(max_length=NAME_CHARS_MAX)],
    *,
    version: Version = None,
    form: Annotated[Format, Query(alias="format")] = "yaml",
    lang: Language = "en",
) -> Response:
    """One of them as a file, with what is estimated for it."""
    found, chosen = template_named(name), version or versions()[-1]
    if found is None:
        known = ", ".join(one.name for one in templates())
        return refusal(404, f'there is no template "{name}"; there are {known}')
    if ".".join(chosen.split(".")[:2]) not in versions():
        return refusal(404, f'there is no template for verl "{chosen}"; there are for {", ".join(versions())}')
    try:
        write = functools.partial(printed, found, chosen, form, lang)
        text = await parts_of(request).doctor.see(write, request.is_disconnected)
    except ClientGoneError:
        return Response(status_code=499)
    return answer(TemplateText(**_fields(_template_row(found, lang)), version=chosen, format=form, text=text))


# ---------------------------------------------------------------- the work, in its thread


def report_on(question: Question, run: RunPlan | None = None) -> Report:
    """The report. It takes a while. Raises RefusedError that says where the mistake is and what to do."""
    try:
        reading = read(list(_sources(question, run)), list(_overrides(question, run)), question.verl)
    except ReadingError as error:
        words = words_of(error, question.language)
        mistake = Mistake(message=words.what, remedy=words.remedy, name=error.name, line=error.line)
        raise RefusedError(422, f"{error.place}: {words.what} {words.remedy}", [mistake]) from error
    given = Given(
        shape=_model(question),
        critic_shape=_named(question.critic_model, "critic_model", question.language),
        card=_card(question, run),
        host_bytes=_host_bytes(question),
        mean_length_tokens=question.mean_length,
    )
    return make_report(reading, given, question.language, with_defaults=question.all_settings)


def _sources(question: Question, run: RunPlan | None) -> Iterator[Source]:
    """What is written; the run's own configuration where nothing is."""
    if question.text is not None:
        yield Source(PASTED, question.text)
    yield from (Source(one.name, one.text) for one in question.files)
    if run is not None and question.text is None and not question.files:
        yield run.source


def _overrides(question: Question, run: RunPlan | None) -> Iterator[str]:
    """Those of the command line, and over them what is said of the machine."""
    yield from question.overrides
    gpus = question.gpus if question.gpus is not None else run.gpus_of_node if run else None
    nodes = question.nodes if question.nodes is not None else run.nodes if run else None
    told = (("trainer.n_gpus_per_node", gpus), ("trainer.nnodes", nodes))
    yield from (f"{key}={value}" for key, value in told if value is not None)


def _model(question: Question) -> ModelShape | None:
    if question.model_config is None:
        return _named(question.model, "model", question.language)
    try:
        return shape_of_hf_config(question.model_config)
    except (ValueError, TypeError) as error:
        raise _refused("model_config", str(error), "model_config", question.language) from error


def _named(name: str | None, field: str, language: wire.Language) -> ModelShape | None:
    """The model of that name; None where none is told."""
    shape = shape_named(name) if name else None
    if name and shape is None:
        raise _refused(field, say("doctor.ask.model", language, name=name), "model", language)
    return shape


def _card(question: Question, run: RunPlan | None) -> Card | None:
    if not question.gpu:
        return run.card if run else None
    found = card_named(question.gpu) or card_of_size(question.gpu)
    if found is None:
        raise _refused("gpu", say("doctor.ask.card", question.language, name=question.gpu), "card", question.language)
    return found


def _host_bytes(question: Question) -> int | None:
    if not question.host_memory:
        return None
    try:
        return int(parse_quantity(question.host_memory))
    except (ValueError, OverflowError) as error:  # of "1e400"
        message = say("doctor.ask.host", question.language, name=question.host_memory)
        raise _refused("host_memory", message, "host", question.language) from error


def _refused(field: str, message: str, remedy: str, language: wire.Language) -> RefusedError:
    mistake = Mistake(message=message, remedy=say(f"doctor.ask.{remedy}.remedy", language), field=field)
    return RefusedError(422, f"{field}: {message} {mistake.remedy}", [mistake])


def _template_row(template: Template, language: wire.Language) -> TemplateRow:
    return TemplateRow(
        name=template.name,
        title=template.title.said(language),
        card=template.card,
        claim=template.claim.said(language),
    )


def _fields(row: TemplateRow) -> dict[str, str]:
    return {name: getattr(row, name) for name in row.__struct_fields__}
