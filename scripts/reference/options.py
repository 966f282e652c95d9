"""docs/reference/options.md: every flag of every command, with its variable and its default."""

# ruff: noqa: E501 - lines of the page

import argparse
import re
from collections.abc import Iterator
from typing import get_type_hints

from scripts.reference.tables import code, table
from scripts.reference.words import Words

from oomwatch import commandline as server
from oomwatch import wire
from oomwatch.settings import Settings
from oomwatch_agent import launch, parse, settings

_EN = """\
# Options

Every flag of every command. How the commands are used: [commands](cli.md).

**Four places.** A setting of `oomwatch serve` and of `oomwatch-agent` may be given as a flag, as an environment variable, as a key
of the YAML file of `--config` (by the flag's name, `_` for `-`), or not at all; the first of these counts. A list is given as a
flag several times, in a variable with commas between, and in the file as a list. A secret may be given as the path of a
file that holds it: `--token-file`, `OOMWATCH_TOKEN_FILE`, `token_file`.

**Values.** Durations are written `30s`, `5m`, `1h30m`, `2d`; sizes `80GiB`. A flag that is on elsewhere is switched off by its
`--no-` form.

## Variables of other programs

| variable | read by | meaning |
|---|---|---|
| `OOMWATCH_PROBE` | [the probe](../howto/probe.md) | `0`: no probe |
| `OOMWATCH_PROBE_SOCKET` | the probe, `oomwatch-agent run` | the agent's socket, where it is none of the usual ones |
| `OOMWATCH_RUN` | the agent, the probe | name of the training run |
| `OOMWATCH_UNPACKED` | [the agent as one file](../howto/install.md#one-file) | folder into which it unpacks itself |
"""
_ZH = """\
# 选项

每条命令的每个选项。命令怎么用：[命令](cli.md)。

**四处来源。** `oomwatch serve` 和 `oomwatch-agent` 的设置可以写成选项、环境变量、`--config` 所指 YAML 文件中的键（名称同选项，`-` 换成 `_`），
也可以不写；按此顺序，先有的为准。列表写成选项时重复该选项，写成变量时用逗号分隔，在文件中写成列表。机密可以用存放它的文件的路径给出：`--token-file`、`OOMWATCH_TOKEN_FILE`、`token_file`。

**值。** 时长写作 `30s`、`5m`、`1h30m`、`2d`；大小写作 `80GiB`。已经打开的选项，用它的 `--no-` 形式关闭。

## 其他程序的变量

| 变量 | 由谁读取 | 含义 |
|---|---|---|
| `OOMWATCH_PROBE` | [探针](../howto/probe.md) | `0`：不用探针 |
| `OOMWATCH_PROBE_SOCKET` | 探针、`oomwatch-agent run` | 代理的套接字，不在通常的位置时 |
| `OOMWATCH_RUN` | 代理、探针 | 训练任务的名称 |
| `OOMWATCH_UNPACKED` | [单文件的代理](../howto/install.md#one-file) | 它把自己解包到哪个目录 |
"""
_ABOUT: dict[wire.Language, str] = {"en": _EN, "zh": _ZH}
_FROM = re.compile(r" \((OOMWATCH_\w+)(?:; default: (.*?))?\)(; may be repeated)?$")

_NOTHING = (None, "none", "False", "")  # the meaning says what is done without it


def page(say: Words) -> str:
    """The whole page."""
    of_server = [section for name, one in commands(server.command_line()) for section in _section(name, one, say)]
    of_agent = [section for one in agent_commands() for section in _section(one.prog, one, say)]
    return "\n".join([_ABOUT[say.language], *of_server, *of_agent, *_in_file_alone(say)])


def _in_file_alone(say: Words) -> Iterator[str]:
    """Keys of the settings files that no flag has."""
    yield f"## {say('In the settings file alone')}\n"
    rows = [
        (code(name), code(program), _as_text(say(spec.help)) + say(" ([how](signals.md#patterns-of-your-own))"))
        for program, kind in (("oomwatch serve", Settings), ("oomwatch-agent", settings.AgentSettings))
        for name, hint in get_type_hints(kind, include_extras=True).items()
        for spec in (meta.extra["option"] for meta in getattr(hint, "__metadata__", ()) if meta.extra)
        if spec.only_in_file
    ]
    yield table(map(say, ("key", "of", "meaning")), rows)


def agent_commands() -> list[argparse.ArgumentParser]:
    """The agent, and the two programs that are called by its name."""
    return [settings.command_line(), launch.command_line(), parse.command_line()]


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command of a program by its whole name, those that have words of their own too."""
    for action in parser._actions:  # noqa: SLF001 - argparse tells of its flags in no other way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for one in dict.fromkeys(action.choices.values()):
                if _own(one):
                    yield one.prog, one
                yield from commands(one)


def _own(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """What is given to a command, without its help and its words."""
    apart = (argparse._HelpAction, argparse._VersionAction, argparse._SubParsersAction)  # noqa: SLF001
    return [action for action in parser._actions if not isinstance(action, apart)]  # noqa: SLF001


def _section(name: str, parser: argparse.ArgumentParser, say: Words) -> Iterator[str]:
    yield f"## {name}\n"
    rows = [_row(action, say) for action in _own(parser)]
    if any(variable for _, variable, _, _ in rows):
        yield table(map(say, ("flag", "variable", "default", "meaning")), rows)
    else:
        yield table(map(say, ("flag", "meaning")), [(flag, meaning) for flag, _, _, meaning in rows])


def _row(action: argparse.Action, say: Words) -> tuple[str, str, str, str]:
    text = (action.help or "").replace("%%", "%")
    found = _FROM.search(text)
    variable, default, repeated = found.groups() if found else ("", "", "")
    meaning = say(text[: found.start()] if found else text) + say(repeated or "")
    if default in _NOTHING:
        default = ""
    return code(_shown(action)), code(variable or ""), code(default or ""), _as_text(meaning)


def _shown(action: argparse.Action) -> str:
    value = str(action.metavar or (action.dest.upper() if action.option_strings else action.dest))
    if action.choices is not None and action.metavar is None:
        value = "|".join(map(str, action.choices))
    if not action.option_strings:
        return value
    flags = ", ".join(action.option_strings)
    return flags if action.nargs == 0 else f"{flags} {value}"


def _as_text(text: str) -> str:
    """Help is plain text: what Markdown would take for marks is none."""
    return re.sub(r"([<*_\[\]])", r"\\\1", text)
