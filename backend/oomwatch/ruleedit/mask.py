"""PURE: a rule file as it may be shown, with a placeholder for each secret.

A placeholder names the state of the file that it was made of ("secret-1-of-0a1b2c3d"), so that it always stands for the
same secret. unmask.py puts the secrets back.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from yaml import MappingNode, Node, ScalarNode, SequenceNode

from oomwatch.notify.config import NotifyConfig, decode_hook
from oomwatch.notify.secret import Secret
from oomwatch.ruleedit.marks import Edit, Ranges, compose, edited, scalars, value_of
from oomwatch.yamlread import MistakeFoundError, Reader

# Names of keys whose values are hidden outside of the rules, whatever this version makes of them. `url_env`,
# `token_file` and their like name a place, and are shown.
_HIDDEN = "url|urls|uri|secret|secrets|token|tokens|password|passwd|key|keys|webhook|credentials|authorization|headers"
_SECRET_KEY = re.compile(rf"(?:.*[_-])?(?:{_HIDDEN})\Z", re.IGNORECASE)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_EXAMPLE = re.compile(
    r"(?i)[a-z]+://(?:127\.0\.0\.1|localhost|\[::1\]|(?:[\w-]+\.)*example\.(?:com|org|net))(?::\d+)?(?:/[^@?#=\s]*)?\Z"
)
# In comments, and in text that is no YAML: `url: value`, up to what ends a value.
_PAIR = re.compile(rf"(?i)(?<![\w-])(?:[\w-]*[_-])?(?:{_HIDDEN})[\"']?\s*[:=]\s*(\"[^\"\n]*\"|'[^'\n]*'|[^\s,}}\]]+)")
# What stands between blanks, quotes and brackets.
_RUN = re.compile(r"[^\s\"',{}\[\]]+")
_MADE_UP_CHARS = 12
PLACEHOLDER = re.compile(r"secret-(\d{1,6})-of-([0-9a-f]{8})")
LEAST_CHARS = 4  # what is shorter is in every text, and no secret


class Masked(NamedTuple):
    text: str
    secrets: tuple[str, ...]  # what stood in the text, by the number of its placeholder from 1


def digest_of(text: str) -> str:
    """What tells one state of a file from another."""
    return sha256(text.encode()).hexdigest()


def masked(text: str) -> Masked:
    """The text without its secrets: addresses, keys and tokens outside of the rules, and what looks so in comments.

    Of a text that is no YAML everything that looks like one is hidden.
    """
    places = _apart(_places(text))
    mark = digest_of(text)[:8]
    edits = [Edit(start, end, f'"secret-{number}-of-{mark}"') for number, (start, end) in enumerate(places, start=1)]
    return Masked(edited(text, edits), tuple(text[start:end] for start, end in places))


def _apart(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same in order, with those that overlap made one."""
    apart: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if apart and start < apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart


def scrubbed(sentences: Iterable[str], *originals: str) -> list[str]:
    """Sentences without the secrets of these files, whatever they quote."""
    secrets = [secret.strip("\"'") for original in originals for secret in masked(original).secrets]
    bare = [secret for secret in dict.fromkeys(secrets) if len(secret) >= LEAST_CHARS]
    return [_without(sentence, bare) for sentence in sentences]


def _without(sentence: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        sentence = sentence.replace(secret, "(secret)")
    return sentence


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Where secrets stand, some more than once."""
    root = compose(text)
    if root is None:
        yield from _looks_secret(text, 0)
        yield from (run.span() for run in _RUN.finditer(text) if _looks_made_up(run.group()))
        return
    known = _known_secrets(value_of(root, "notify"))
    for _, section in hiding_sections(root):
        for one in scalars(section):
            value = str(one.value).strip()
            if _ADDRESS.match(value) or (value in known if known is not None else _holds_made_up(value)):
                yield _place(text, one)
    yield from (
        _place(text, one) for one in _under_secret_keys([section for _, section in hiding_sections(root)]) if one.value
    )
    inside = [(one.start_mark.index, one.end_mark.index) for one in scalars(root)]
    for start, comment in _comments(text, inside):
        yield from (place for place in _looks_secret(comment, start) if not _is_example(text[slice(*place)]))


def _holds_made_up(text: str) -> bool:
    return any(_looks_made_up(run.group()) for run in _RUN.finditer(text))


def _looks_made_up(run: str) -> bool:
    """Whether it is an address, or looks as if a machine had made it up. Asked where a key may be misspelt."""
    if "://" in run or "@" in run.partition(":")[2]:
        return True
    return len(run) >= _MADE_UP_CHARS and any(map(str.isdigit, run)) and any(map(str.isalpha, run))


def _is_example(value: str) -> bool:
    """Whether it is an address of this machine or of nobody (RFC 2606), without a name and a query: no secret."""
    return _EXAMPLE.match(value.strip("\"'")) is not None


def hiding_sections(root: Node | None) -> list[tuple[str, Node]]:
    """The sections that may hold secrets, by name: all but those of the rules themselves."""
    pairs = root.value if isinstance(root, MappingNode) else []
    return [(str(key.value), child) for key, child in pairs if key.value not in ("rules", "overrides")]


def _place(text: str, node: ScalarNode) -> tuple[int, int]:
    """Where a value stands, with its tag or anchor, and without the blank lines behind it."""
    start, end = node.start_mark.index, node.end_mark.index
    return start, start + len(text[start:end].rstrip())


def _known_secrets(notify: Node | None) -> set[str] | None:
    """The values that this version reads as secrets, whatever their keys are called; None where it has mistakes."""
    found: set[str] = set()

    def decode(kind: type, value: Any) -> Any:  # noqa: ANN401 - as the hook that it stands before
        read = decode_hook(kind, value)
        if isinstance(read, Secret):
            found.add(read.reveal())
        return read

    if notify is not None:
        try:
            Reader(decode).value(notify, NotifyConfig)
        except MistakeFoundError:
            return None
    return found - {""}


def _under_secret_keys(nodes: Sequence[Node]) -> Iterator[ScalarNode]:
    for node in nodes:
        if isinstance(node, MappingNode):
            for key, child in node.value:
                is_hidden = _SECRET_KEY.match(str(key.value))
                yield from (one for _, one in keyed("", child)) if is_hidden else _under_secret_keys([child])
        elif isinstance(node, SequenceNode):
            yield from _under_secret_keys(node.value)


def _looks_secret(text: str, offset: int) -> Iterator[tuple[int, int]]:
    for match in _PAIR.finditer(text):
        yield offset + match.start(1), offset + match.end(1)


def _comments(text: str, values: list[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """The parts of the lines that are comments: from a # that is within no value to the end of its line."""
    inside = Ranges(values)
    for match in re.finditer(r"(?:^|(?<=\s))#[^\n]*", text, re.MULTILINE):
        if match.start() not in inside:
            yield match.start(), match.group()


def keyed(key: str, node: Node) -> Iterator[tuple[str, ScalarNode]]:
    """The values below a node, each with the key that it, or the list that it is in, stands under."""
    if isinstance(node, ScalarNode):
        yield key, node
    elif isinstance(node, MappingNode):
        for name, child in node.value:
            yield from keyed(str(name.value), child)
    elif isinstance(node, SequenceNode):
        for child in node.value:
            yield from keyed(key, child)
