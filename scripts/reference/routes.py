"""docs/reference/routes.md: every path that a server answers."""

# ruff: noqa: E501 - lines of the page

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from scripts.reference.tables import code, table

from oomwatch.web.api import install

_ABOUT = """\
# Routes

Every path that a server answers, from its own description (`GET /api/v1/openapi.json`). What the answers mean and how things are
done by them: [REST interface](api.md). Who may do what: [access](../howto/access.md).

## Beside the interface

| path | what it is |
|---|---|
| `GET /` | the page |
| `GET /static/...` | the page's scripts, styles and words |
| `WebSocket /ws/agent` | where [agents](wire-protocol.md) send |
| `WebSocket /ws/live` | what [browsers](wire-protocol.md) are told |
| `GET /metrics` | [for Prometheus](metrics.md) |
| `GET /healthz`, `GET /readyz` | whether the server lives, and whether it does its work; open to everybody |
| `POST /sign-in`, `POST /sign-out` | [signing in](../howto/access.md) and out |
| `GET /sign-in/oidc`, `GET /sign-in/back` | signing in by an identity provider, where there is one |
"""

_NOT_OURS = "422"  # FastAPI's own, which a server answers as 400


def page() -> str:
    """The whole page."""
    app = FastAPI()
    install(app)
    said = app.openapi()
    parts = [_ABOUT]
    for path, of_path in said["paths"].items():
        for method, one in of_path.items():
            parts += _section(f"{method.upper()} {path}", one)
    return "\n".join(parts)


def _section(name: str, one: dict[str, Any]) -> Iterator[str]:
    yield f"## {code(name)}\n"
    about = one.get("description") or one.get("summary", "")
    yield " ".join(about.split()) + "\n"
    if parameters := one.get("parameters"):
        rows = [(code(each["name"]), each["in"], _kind(each), each.get("description", "")) for each in parameters]
        yield table(("parameter", "in", "what", "meaning"), rows)
    if body := one.get("requestBody"):
        yield f"Is sent: {_shape(body) or 'JSON'}.\n"
    said = ((status, answer) for status, answer in one["responses"].items() if status != _NOT_OURS)
    answers = (f"{status}{_of(answer)}" for status, answer in said)
    yield f"Answers: {', '.join(answers)}.\n"


def _of(answer: dict[str, Any]) -> str:
    shape = _shape(answer)
    return f" ({shape})" if shape else ""


def _shape(holder: dict[str, Any]) -> str:
    """What a body is, by the name of its type."""
    for kind, content in holder.get("content", {}).items():
        named = _named(content.get("schema", {}))
        return code(named) if named else kind.removeprefix("application/json")
    return ""


def _named(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "items" in schema:
        return f"{_named(schema['items'])}[]"
    return " or ".join(filter(None, map(_named, schema.get("anyOf", ()))))


def _kind(parameter: dict[str, Any]) -> str:
    """The type of a parameter, its choices and its default."""
    schema = parameter["schema"]
    kinds = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    words = [", ".join(map(str, one["enum"])) if "enum" in one else str(one.get("type", "")) for one in kinds]
    default = schema.get("default")
    needed = ", required" if parameter.get("required") else "" if default is None else f", {default} without it"
    return " or ".join(words) + needed
