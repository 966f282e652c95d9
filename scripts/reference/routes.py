"""docs/reference/routes.md: every path that a server answers."""

# ruff: noqa: E501 - lines of the page

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from scripts.reference.tables import code, table
from scripts.reference.words import Words

from oomwatch import wire
from oomwatch.web.api import install

_EN = """\
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
_ZH = """\
# 路径

服务器应答的每个路径，取自它自己的描述（`GET /api/v1/openapi.json`）。应答的含义，以及怎样用它们做事：[REST 接口](api.md)。谁可以做什么：[访问](../howto/access.md)。

## 接口之外

| 路径 | 是什么 |
|---|---|
| `GET /` | 页面 |
| `GET /static/...` | 页面的脚本、样式和文字 |
| `WebSocket /ws/agent` | [代理](wire-protocol.md)向这里发送 |
| `WebSocket /ws/live` | [浏览器](wire-protocol.md)从这里得知 |
| `GET /metrics` | [供 Prometheus 使用](metrics.md) |
| `GET /healthz`、`GET /readyz` | 服务器是否活着，以及是否在工作；对所有人开放 |
| `POST /sign-in`、`POST /sign-out` | [登录](../howto/access.md)和退出 |
| `GET /sign-in/oidc`、`GET /sign-in/back` | 通过身份提供方登录（配置了的话） |
"""
_ABOUT: dict[wire.Language, str] = {"en": _EN, "zh": _ZH}

_NOT_OURS = "422"  # FastAPI's own, which a server answers as 400


def page(say: Words) -> str:
    """The whole page."""
    app = FastAPI()
    install(app)
    said = app.openapi()
    parts = [_ABOUT[say.language]]
    for path, of_path in said["paths"].items():
        for method, one in of_path.items():
            parts += _section(f"{method.upper()} {path}", one, say)
    return "\n".join(parts)


def _section(name: str, one: dict[str, Any], say: Words) -> Iterator[str]:
    yield f"## {code(name)}\n"
    about = one.get("description") or one.get("summary", "")
    yield say(" ".join(about.split())) + "\n"
    if parameters := one.get("parameters"):
        rows = [
            (code(each["name"]), each["in"], _kind(each, say), say(each.get("description", ""))) for each in parameters
        ]
        yield table(map(say, ("parameter", "in", "what", "meaning")), rows)
    if body := one.get("requestBody"):
        yield say("Is sent: {what}.", what=_shape(body, say) or "JSON") + "\n"
    said = ((status, answer) for status, answer in one["responses"].items() if status != _NOT_OURS)
    answers = (_answer(status, answer, say) for status, answer in said)
    yield say("Answers: {them}.", them=say.listed(answers)) + "\n"


def _answer(status: str, answer: dict[str, Any], say: Words) -> str:
    shape = _shape(answer, say)
    return say("{status} ({what})", status=status, what=shape) if shape else status


def _shape(holder: dict[str, Any], say: Words) -> str:
    """What a body is, by the names of the types that it may have."""
    for kind, content in holder.get("content", {}).items():
        schema = content.get("schema", {})
        names = filter(None, map(_named, schema.get("anyOf", [schema])))
        return say.any_of(map(code, names)) or kind.removeprefix("application/json")
    return ""


def _named(schema: dict[str, Any]) -> str:
    """The type's name; "" where it has none."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "items" in schema:
        return f"{_named(schema['items'])}[]"
    return ""


def _kind(parameter: dict[str, Any], say: Words) -> str:
    """The type of a parameter, its choices and its default."""
    schema = parameter["schema"]
    kinds = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    words = [say.listed(map(str, one["enum"])) if "enum" in one else str(one.get("type", "")) for one in kinds]
    default = schema.get("default")
    what = say.any_of(words)
    if parameter.get("required"):
        return say("{what}, required", what=what)
    return what if default is None else say("{what}, {default} without it", what=what, default=str(default))
