"""The overrides that a launch script, or a command line, gives to verl."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from oomwatch.doctor.read.layers import Given, Layer
from oomwatch.doctor.read.reading import Complaint, Kind, Origin, ReadingError
from oomwatch.doctor.read.shell.expand import Text
from oomwatch.doctor.read.shell.script import Command, Script, read_script

_SECTIONS = "actor_rollout_ref|algorithm|critic|custom_reward_function|data|distillation|global_profiler|model_engine|ray_init|ray_kwargs|reward|reward_manager|reward_model|trainer|transfer_queue"  # noqa: E501 - of verl's configuration
_OF_VERL = re.compile(rf"(?:--)?(?:\+\+|\+|~)?(?:{_SECTIONS})(?:[.@/=]|$)")
_OVERRIDE = re.compile(r"(?:--)?(?:\+\+|\+|~)?[A-Za-z_$][\w$./@\-]*=|~[A-Za-z_]")
_ENTRY = re.compile(r"verl[\w.]*\.(?:main|trainer|entry)[\w.]*|.*main_[\w]*(?:\.py)?|recipe\.[\w.]+")
_WITH_VALUE = {
    "--config-name": "config", "-cn": "config", "--config-path": "path", "-cp": "path", "--config-dir": "path",
    "-cd": "path", "--package": "", "-p": "", "--info": "", "--experimental-rerun": "",
}  # fmt: skip
_FLAGS = frozenset({"--multirun", "-m", "--resolve", "--cfg", "-c", "--run", "-r", "--hydra-help", "--help"})
_MOST_NESTED = 3  # bash -c "bash -c ..."


class _Found(NamedTuple):
    command: Command
    program: str | None
    words: tuple[Text, ...]  # from the first that Hydra sees


def read_launch(text: str, name: str, kind: Kind) -> Layer:
    """What a script's last command with verl's settings says. Raises ReadingError where the script is broken."""
    script = read_script(text.replace("\r\n", "\n"), name)
    complaints = [*script.complaints, *_carriage_returns(text, name)]
    found = list(_launches(script, name, _MOST_NESTED))
    if not found:
        given = tuple(
            _given(word, name) for command in script.commands for word in command.words if _reads_as_one(word)
        )
        return Layer(name, "overrides" if given else kind, given=given, complaints=tuple(complaints))
    last = found[-1]
    if len(found) > 1:
        complaints.append(
            Complaint(
                what="several_commands", severity="info", name=name, line=last.command.line, values={"n": len(found)}
            )
        )
    complaints += _lost(script, last.command, name)
    bases, given = _divided(last.words, name, complaints)
    return Layer(name, kind, given=given, bases=bases, program=last.program, complaints=tuple(complaints))


def _launches(script: Script, name: str, depth: int) -> Iterator[_Found]:
    """The commands that start verl, also those within `bash -c "..."`."""
    for command in script.commands:
        inner = next((word for word in command.words if _is_command_line(word.text)), None)
        if inner is not None and depth:
            try:
                yield from _launches(read_script(inner.text, name), name, depth - 1)
            except ReadingError:
                continue
        elif not _reads_as_one(command.words[0]):
            start = _start(command)
            if start is not None:
                program = command.words[start - 1].text if start else ""
                named = program if _ENTRY.fullmatch(program) else None
                yield _Found(command, named, command.words[start:])


def _is_command_line(text: str) -> bool:
    return bool(re.search(r"\s", text)) and re.search(rf"\s(?:\+\+|\+|~)?(?:{_SECTIONS})\.[\w.]+=", text) is not None


def _start(command: Command) -> int | None:
    """Where Hydra's words begin: behind the program, if one can be told, else with the first override."""
    first = next((at for at, word in enumerate(command.words) if _OF_VERL.match(word.text)), None)
    before = command.words if first is None else command.words[:first]
    entry = next((at for at, word in enumerate(before) if _ENTRY.fullmatch(word.text)), None)
    if first is None:
        return entry + 1 if entry is not None and any(at > entry for at in range(len(command.words))) else None
    return first if entry is None else entry + 1


def _reads_as_one(word: Text) -> bool:
    return _OF_VERL.match(word.text) is not None and _OVERRIDE.match(word.text) is not None


def _divided(
    words: tuple[Text, ...], name: str, complaints: list[Complaint]
) -> tuple[tuple[str, ...], tuple[Given, ...]]:
    """Hydra's own flags and the overrides."""
    bases: list[str] = []
    given: list[Given] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        flag, equals, value = word.text.partition("=")
        if flag in _WITH_VALUE:
            value = value if equals or not waiting else waiting.pop(0).text
            bases += [value] if _WITH_VALUE[flag] == "config" else []
        elif word.text in _FLAGS:
            continue
        elif word.text.startswith("--") and equals:
            complaints.append(_dashes(word, name))
            given.append(_given(word._replace(text=word.text[2:]), name))
        elif word.text.strip():
            given.append(_given(word, name))
    return tuple(bases), tuple(given)


def _dashes(word: Text, name: str) -> Complaint:
    bare = word.text[2:]
    return Complaint(
        what="dashes", severity="error", name=name, line=word.line, values={"text": word.text[:80]}, suggestion=bare
    )


def _given(word: Text, name: str) -> Given:
    origin = Origin(kind="override", name=name, line=word.line)
    return Given(word.text, origin, word.unresolved, word.doubtful)


def _lost(script: Script, command: Command, name: str) -> Iterator[Complaint]:
    """Overrides that stand behind the command's end, which the shell takes for commands of their own."""
    if command not in script.commands:
        return
    at = script.commands.index(command) + 1
    lost = [one for one in script.commands[at:] if _reads_as_one(one.words[0])]
    if lost:
        what = {"comment": "lost_by_comment", "blank": "lost_by_blank"}.get(command.cut_by or "", "lost")
        words = sum(len(one.words) for one in lost)
        yield Complaint(
            what=what,
            severity="error",
            name=name,
            line=lost[0].line,
            values={"n": words, "key": lost[0].words[0].text[:80]},
        )


def _carriage_returns(text: str, name: str) -> Iterator[Complaint]:
    if "\\\r\n" in text:
        line = text.count("\n", 0, text.index("\\\r\n")) + 1
        yield Complaint(what="carriage_returns", severity="error", name=name, line=line)
