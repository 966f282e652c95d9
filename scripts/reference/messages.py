"""docs/reference/messages.md: every message of the protocol, field by field, from `wire.py` and its comments."""

# ruff: noqa: E501 - lines of the page

import ast
import inspect
import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import StructConfig
from scripts.reference.tables import code, table
from scripts.reference.words import Words

from oomwatch import wire

_EN = """\
# Messages

Every type of the [wire protocol](wire-protocol.md), version 1, with every field. Who speaks when is told there.

A field without a default must be there. One whose default is `None`, `0`, `false` or empty is left out where it has nothing
to say; what could not be read is left out, and is never 0. Names end in their unit; `_at` are Unix seconds.
"""
_ZH = """\
# 消息

[协议](wire-protocol.md)第 1 版的每种类型及其每个字段。谁在何时说话，见协议一页。

没有默认值的字段必须给出。默认值为 `None`、`0`、`false` 或空的字段，没有内容时省略；没能读到的省略，绝不写成 0。名称以单位结尾；`_at` 是 Unix 秒。
"""
_ABOUT: dict[wire.Language, str] = {"en": _EN, "zh": _ZH}
_SOURCE = inspect.getsource(wire).splitlines()


def page(say: Words) -> str:
    """The whole page."""
    return "\n".join([_ABOUT[say.language], *(part for one in structs() for part in _section(one, say))])


def structs() -> list[ast.ClassDef]:
    """The types of the protocol, in the order of the file."""
    found = (node for node in ast.parse("\n".join(_SOURCE)).body if isinstance(node, ast.ClassDef))
    return [node for node in found if not node.name.startswith("_") and issubclass(_kind(node), msgspec.Struct)]


def _kind(node: ast.ClassDef) -> type:
    kind: type = getattr(wire, node.name)
    return kind


def _section(node: ast.ClassDef, say: Words) -> Iterator[str]:
    kind = _kind(node)
    config: StructConfig = kind.__struct_config__  # type: ignore[attr-defined]
    yield f"## {node.name}\n"
    if config.tag is not None:
        yield f"`{config.tag_field}`: `{config.tag}`\n"
    if about := ast.get_docstring(node):
        yield "\n\n".join(map(say, about.split("\n\n"))) + "\n"
    fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
    if fields:
        head = map(say, ("field", "type", "default", "meaning"))
        yield table(head, [_row(field, say) for field in fields])


def _row(field: ast.AnnAssign, say: Words) -> tuple[str, str, str, str]:
    default = ast.unparse(field.value) if field.value else ""
    return code(ast.unparse(field.target)), code(_type(field.annotation)), code(default), say(_comment(field))


def _type(annotation: ast.expr) -> str:
    """As it is written, without the bounds, which `wire.py` has."""
    return re.sub(r"Annotated\[(.*), Meta\(.*\)\]", r"\1", ast.unparse(annotation))


def _comment(field: ast.AnnAssign) -> str:
    """What stands behind the field, and in lines of comment right below it."""
    last = (field.end_lineno or field.lineno) - 1
    rest = _SOURCE[last][field.end_col_offset or 0 :]
    said = [rest.partition("#")[2].strip()]
    for line in _SOURCE[last + 1 :]:
        if not said[0] or not line.lstrip().startswith("#"):
            break
        said.append(line.strip().removeprefix("#").strip())
    return re.sub(r"noqa: \S+( - )?", "", " ".join(said))
