"""What the routes of the doctor are sent and answer with, beside its report (doctor/result.py)."""

from typing import Annotated

from msgspec import Meta, Struct

NAME_CHARS_MAX = 200


class DoctorFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of a configuration, as it was dropped on the page."""

    name: Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
    text: str


class Mistake(Struct, frozen=True, kw_only=True):
    """Why nothing can be said. `name` and `line` are of what was sent; `field` is the question's own."""

    message: str
    remedy: str
    name: str | None = None
    line: int | None = None
    field: str | None = None


class ModelRow(Struct, frozen=True, kw_only=True):
    name: str
    parameters: int
    verified: bool


class CardRow(Struct, frozen=True, kw_only=True):
    name: str
    usable_bytes: int
    total_bytes: int | None
    verified: bool
    source: str


class TemplateRow(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    card: str  # that it is for
    claim: str  # of the article that it is from


class TemplateText(TemplateRow, frozen=True, kw_only=True):
    version: str
    format: str
    text: str
