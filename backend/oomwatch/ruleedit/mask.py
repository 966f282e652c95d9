"""PURE: a rule file as it may be shown, with a placeholder for each secret.

A placeholder names the state of the file that it was made of ("secret-1-of-0a1b2c3d"), so that it always stands for the
same secret. unmask.py puts the secrets back.
"""

import contextlib
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from yaml import MappingNode, Node, ScalarNode, SequenceNode

from oomwatch.notify.config import NotifyConfig, decode_hook
from oomwatch.notify.secret import Secret
from oomwatch.ruleedit.marks import Edit, compose, edited, scalars, value_of
from oomwatch.yamlread import MistakeFoundError, Reader

# Names of keys whose values are hidden below notify:, whatever this version makes of them. `url_env`, `token_file` and
# their like name a place, and are shown.
_HIDDEN = "url|urls|uri|secret|secrets|token|tokens|password|passwd|key|keys|webhook|credentials|authorization|headers"
_SECRET_KEY = re.compile(rf"(?:.*[_-])?(?:{_HIDDEN})\Z", re.IGNORECASE)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# In comments, and in text that is no YAML: `url: value`, up to what ends a value.
_PAIR = re.compile(rf"(?i)(?<![\w-])(?:[\w-]*[_-])?(?:{_HIDDEN})[\"']?\s*[:=]\s*(\"[^\"\n]*\"|'[^'\n]*'|[^\s,}}\]]+)")
_ANY_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"',}\]]+")
PLACEHOLDER = re.compile(r"secret-(\d+)-of-([0-9a-f]{8})")
LEAST_CHARS = 4  # what is shorter is in every text, and no secret


class Masked(NamedTuple):
    text: str
    secrets: tuple[str, ...]  # what stood in the text, by the number of its placeholder from 1


def digest_of(text: str) -> str:
    """What tells one state of a file from another."""
    return sha256(text.encode()).hexdigest()


def masked(text: str) -> Masked:
    """The text without its secrets: inline addresses, keys and tokens of `notify:`, and what looks so in comments.

    Of a text that is no YAML everything that looks like one is hidden.
    """
    places = sorted(set(_places(text)))
    places = [one for before, one in zip([(0, 0), *places], places, strict=False) if one[0] >= before[1]]
    mark = digest_of(text)[:8]
    edits = [Edit(start, end, f'"secret-{number}-of-{mark}"') for number, (start, end) in enumerate(places, start=1)]
    return Masked(edited(text, edits), tuple(text[start:end] for start, end in places))


def scrubbed(sentence: str, original: str) -> str:
    """A sentence without the secrets of a file, whatever it quotes."""
    for secret in masked(original).secrets:
        bare = secret.strip("\"'")
        if len(bare) >= LEAST_CHARS:
            sentence = sentence.replace(bare, "(secret)")
    return sentence


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Where secrets stand, some more than once."""
    root = compose(text)
    if root is None:
        yield from _looks_secret(text, 0)
        yield from (match.span() for match in _ANY_ADDRESS.finditer(text))
        return
    notify = value_of(root, "notify")
    known = _known_secrets(notify)
    for one in scalars(notify):
        if str(one.value).strip() in known or _ADDRESS.match(str(one.value).strip()):
            yield _place(text, one)
    yield from (_place(text, one) for one in _under_secret_keys(notify) if one.value)
    inside = [(one.start_mark.index, one.end_mark.index) for one in scalars(root)]
    for start, comment in _comments(text, inside):
        yield from _looks_secret(comment, start)


def _place(text: str, node: ScalarNode) -> tuple[int, int]:
    """Where a value stands, with its tag or anchor, and without the blank lines behind it."""
    start, end = node.start_mark.index, node.end_mark.index
    return start, start + len(text[start:end].rstrip())


def _known_secrets(notify: Node | None) -> set[str]:
    """The values that this version reads as secrets, whatever their keys are called."""
    found: set[str] = set()

    def decode(kind: type, value: Any) -> Any:  # noqa: ANN401 - as the hook that it stands before
        read = decode_hook(kind, value)
        if isinstance(read, Secret):
            found.add(read.reveal())
        return read

    if notify is not None:
        with contextlib.suppress(MistakeFoundError):  # what could be read was
            Reader(decode).value(notify, NotifyConfig)
    return found - {""}


def _under_secret_keys(node: Node | None) -> Iterator[ScalarNode]:
    if isinstance(node, MappingNode):
        for key, child in node.value:
            is_hidden = _SECRET_KEY.match(str(key.value))
            yield from (one for _, one in keyed("", child)) if is_hidden else _under_secret_keys(child)
    elif isinstance(node, SequenceNode):
        for child in node.value:
            yield from _under_secret_keys(child)


def _looks_secret(text: str, offset: int) -> Iterator[tuple[int, int]]:
    for match in _PAIR.finditer(text):
        yield offset + match.start(1), offset + match.end(1)


def _comments(text: str, values: list[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """The parts of the lines that are comments: from a # that is within no value to the end of its line."""
    ends = sorted(values)
    for match in re.finditer(r"(?:^|(?<=\s))#[^\n]*", text, re.MULTILINE):
        if not any(start <= match.start() < end for start, end in ends):
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
