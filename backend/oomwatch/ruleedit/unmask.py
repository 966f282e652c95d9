"""PURE: the secrets of a rule file put back into the text that was shown without them.

A placeholder is taken only where it is the whole of a value, under the key that it was under, in a channel with all the
secrets that were its company, and where a secret would be hidden again: so nobody can have a secret shown, or sent
elsewhere, by moving its placeholder into a name, a sentence or beside another address.
"""

import re
from collections.abc import Iterator

from yaml import MappingNode, Node, ScalarNode

from oomwatch.ruleedit.marks import Edit, EditError, Ranges, compose, edited, items, scalars, value_of
from oomwatch.ruleedit.mask import LEAST_CHARS, PLACEHOLDER, digest_of, hiding_sections, keyed, masked

_Company = frozenset[tuple[str, int]]  # the secrets of one channel: key, and number


def restored(text: str, original: str) -> str:
    """The text with the secrets of `original`, of which it was made, put back. Raises EditError."""
    if not PLACEHOLDER.search(text):
        return text
    before = masked(original)
    edits = list(_returns(text, before.secrets, digest_of(original)[:8]))
    _check_company(text, before.text)
    whole = edited(text, edits)
    shown = masked(whole).text
    for back in dict.fromkeys(edit.text for edit in edits):
        bare = back.strip("\"'")
        if len(bare) >= LEAST_CHARS and shown.count(bare) > before.text.count(bare):
            raise EditError("a secret's placeholder stands where its value would be seen; leave it where it was")
    return whole


def _returns(text: str, secrets: tuple[str, ...], mark: str) -> Iterator[Edit]:
    covered: list[tuple[int, int]] = []
    for one in scalars(compose(text)):
        start, end = one.start_mark.index, one.end_mark.index
        found = PLACEHOLDER.search(str(one.value))
        if found is not None:
            covered.append((start, end))
            yield Edit(start, end, _secret(found, secrets, mark, text, start))
    within = Ranges(covered)
    for found in re.finditer(rf"([\"']?){PLACEHOLDER.pattern}\1", text):
        inner = PLACEHOLDER.search(found.group())
        if inner is not None and found.start() not in within:
            yield Edit(*found.span(), _secret(inner, secrets, mark, text, found.start()))


def _check_company(text: str, shown: str) -> None:
    """Raises EditError for placeholders that are not where they were shown. Of what was no YAML nobody knows."""
    root, before = compose(text), compose(shown)
    known = {company for company, _ in _companies(before)} if before is not None else None
    placed: set[int] = set()
    for company, nodes in _companies(root):
        placed |= {id(one) for one in nodes}
        for one in nodes:
            if not PLACEHOLDER.fullmatch(str(one.value)):
                raise EditError(f"{_at(text, one)}a secret's placeholder must be the whole of a value")
        if known is not None and company not in known:
            raise EditError(
                f"{_at(text, nodes[0])}a secret's placeholder must stay in its channel under its key, with all the "
                "secrets of that channel; to change one of them, write all of them anew"
            )
    for one in scalars(root):
        if id(one) not in placed and PLACEHOLDER.search(str(one.value)):
            raise EditError(f"{_at(text, one)}a secret's placeholder stands where no secret belongs")


def _companies(root: Node | None) -> Iterator[tuple[_Company, list[ScalarNode]]]:
    """The placeholders of each channel that has any, and those beside the channels."""
    rest: list[tuple[str, Node]] = []
    for name, section in hiding_sections(root):
        channels = value_of(section, "channels") if name == "notify" else None
        for channel in items(channels):
            yield from _company([("", channel)])
        pairs = section.value if isinstance(section, MappingNode) else [(ScalarNode("", name), section)]
        rest += [(str(key.value), child) for key, child in pairs if child is not channels]
    yield from _company(rest)


def _company(parts: list[tuple[str, Node]]) -> Iterator[tuple[_Company, list[ScalarNode]]]:
    found: list[tuple[str, ScalarNode]] = []
    for key, node in parts:
        found += [one for one in keyed(key, node) if PLACEHOLDER.search(str(one[1].value))]
    if found:
        numbers = [PLACEHOLDER.search(str(one.value)) for _, one in found]
        pairs = [(key, int(number[1])) for (key, _), number in zip(found, numbers, strict=True) if number]
        yield frozenset(pairs), [one for _, one in found]


def _secret(found: "re.Match[str]", secrets: tuple[str, ...], mark: str, text: str, place: int) -> str:
    number = int(found[1])
    if found[2] != mark:
        raise EditError(
            f"line {_line(text, place)}: the file was changed on disk since this text was read from it, so "
            f"{found.group()} stands for no secret any more; read the file again (on the page: Discard changes) and "
            "make the change anew, or write the secret itself in its place"
        )
    if not 1 <= number <= len(secrets):
        raise EditError(
            f"line {_line(text, place)}: {found.group()} stands for no secret of the file; write the secret itself"
        )
    return secrets[number - 1]


def _at(text: str, node: Node) -> str:
    return f"line {_line(text, node.start_mark.index)}: "


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
