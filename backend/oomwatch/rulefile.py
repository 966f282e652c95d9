"""alerts.yaml: the rules in force, or every mistake in it at once, each with line and column.

rules:      the rules, in order
overrides:  other parameters for some rules on some nodes or runs
notify:     whom to tell, and how
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from oomwatch import wire
from oomwatch.core.conditions import Condition
from oomwatch.core.rule import Override, Rule, RuleSet, RuleText
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.config import decode_hook as decode_notify
from oomwatch.oserror import with_remedy
from oomwatch.units import Duration, Quantity, parse_duration, parse_quantity
from oomwatch.wording import PLACEHOLDER, names_of
from oomwatch.yamlread import Mistake, MistakeFoundError, Reader, merged

FILE_BYTES_MAX = 2**20


class RuleFile(Struct, frozen=True, kw_only=True):
    rules: RuleSet
    notify: NotifyConfig = NotifyConfig()


class RuleFileError(ValueError):
    """The file cannot be used. `mistakes` are all that is wrong with it, in the order of the file."""

    def __init__(self, path: str, mistakes: list[Mistake]) -> None:
        self.mistakes = sorted(set(mistakes))
        super().__init__("\n".join(f"{path}:{one.line}:{one.column}: {one.message}" for one in self.mistakes))

    @classmethod
    def unreadable(cls, path: str, error: Exception) -> "RuleFileError":
        return cls(path, [Mistake(1, 1, f"cannot be read: {with_remedy(error)}")])


class _Texts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """{en: "...", zh: "..."}"""

    en: str
    zh: str | None = None


class _RuleEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of `rules:`, but for `when` and the texts, which are read apart."""

    alert: wire.Name
    severity: wire.Severity = "warning"
    for_: Duration = field(default=Duration(0), name="for")
    keep_firing_for: Duration = Duration(0)
    keep_firing_steps: Annotated[int, Meta(ge=0, le=100)] = 0
    enabled: bool = True
    level: bool = False
    predicts: Literal["device", "host", "disk", "nothing"] | None = None
    before_it_dies: tuple[wire.ActName, ...] = ()


class _Match(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    node: str = "*"
    run: str = "*"


_APART = ("when", "summary", "description", "advice")


def read_rules(path: Path) -> RuleFile:
    """Read a rule file. Raises RuleFileError, also for a file that cannot be read."""
    return parse_rules(text_of(path), str(path))


def text_of(path: Path) -> str:
    """The text of a rule file. Raises RuleFileError. A device or a pipe may have no end, or never begin."""
    try:
        return _read(path)
    except (OSError, ValueError) as error:
        raise RuleFileError.unreadable(str(path), error) from error


def _read(path: Path) -> str:
    if path.exists() and not path.is_file():
        raise ValueError("this is no regular file")
    with path.open("rb") as file:
        return decoded(file.read(FILE_BYTES_MAX + 1))


def decoded(content: bytes) -> str:
    """The text of a rule file's bytes. Raises ValueError where they are too many, or no UTF-8."""
    if len(content) > FILE_BYTES_MAX:
        raise ValueError(f"this is too large to be a rule file: more than {FILE_BYTES_MAX} bytes")
    return content.decode()


def parse_rules(text: str, name: str = "alerts.yaml") -> RuleFile:
    """Rules out of the text of a rule file. Raises RuleFileError with every mistake."""
    parser = _Parser()
    result = parser.parse(text)
    if parser.reader.mistakes:
        raise RuleFileError(name, parser.reader.mistakes)
    return result


class _Parser:
    def __init__(self) -> None:
        self.reader = Reader(_decode)

    def parse(self, text: str) -> RuleFile:
        document = self.reader.compose(text)
        if document is None:
            return RuleFile(rules=RuleSet())
        sections = self._sections(document)
        nodes = list(_items(sections.get("rules")))
        rules = [rule for node in nodes if (rule := self._rule(node)) is not None]
        self._check_unique(nodes)
        overrides = [found for node in _items(sections.get("overrides")) for found in self._overrides(node, nodes)]
        return RuleFile(
            rules=RuleSet(rules=tuple(rules), overrides=tuple(overrides)), notify=self._notify(sections.get("notify"))
        )

    def _sections(self, document: Node) -> dict[str, Node]:
        if not isinstance(document, MappingNode):
            self.reader.mistake(document, "expected the sections rules, overrides and notify")
            return {}
        known = {"rules": SequenceNode, "overrides": SequenceNode, "notify": MappingNode}
        sections: dict[str, Node] = {}
        seen: set[str] = set()
        for key, child in document.value:
            if key.value in seen:
                self.reader.mistake(key, f'"{key.value}" is given twice')
            seen.add(key.value)
            if key.value not in known:
                self.reader.mistake(key, f'unknown section "{key.value}"; known are {", ".join(known)}')
            elif isinstance(child, known[key.value]):
                sections[key.value] = child
            elif not _is_null(child):
                shape = "a list" if known[key.value] is SequenceNode else "a mapping"
                self.reader.mistake(child, f"{key.value} must be {shape}")
        if "rules" not in sections:
            self.reader.mistake(document, "there are no rules: give a list under rules:")
        return sections

    def _rule(self, node: Node) -> Rule | None:
        """One rule, or None where it has mistakes, which are then listed."""
        before = len(self.reader.mistakes)
        apart, rest = _split(node)
        entry = self._attempt(rest, _RuleEntry)
        for key in _given_again(node):
            self.reader.mistake(key, f'"{key.value}" is given twice')
        when = self._when(node, apart.get("when"))
        texts = self._texts(node, apart, _names(when) if len(self.reader.mistakes) == before else None)
        if entry is not None and entry.before_it_dies and entry.severity != "critical":
            self.reader.mistake(node, "before_it_dies is for rules of severity critical")
        if entry is not None and not entry.alert.isprintable():
            self.reader.mistake(node, "the name of an alert cannot hold control characters")
        if entry is None or len(self.reader.mistakes) > before:
            return None
        return Rule(
            alert=entry.alert,
            severity=entry.severity,
            when=when,
            for_seconds=float(entry.for_),
            keep_firing_for_seconds=float(entry.keep_firing_for),
            keep_firing_steps=entry.keep_firing_steps,
            texts=texts,
            enabled=entry.enabled,
            level=entry.level,
            foretells=entry.predicts,
            before_it_dies=entry.before_it_dies,
        )

    def _attempt(self, node: Node, kind: Any) -> Any:
        try:
            return self.reader.value(node, kind)
        except MistakeFoundError:
            return None

    def _when(self, rule: Node, node: Node | None) -> tuple[Condition, ...]:
        if node is None:
            self.reader.mistake(rule, '"when" is missing')
            return ()
        conditions = [self._attempt(child, Condition) for child in (_items(node) if _is_list(node) else [node])]
        if not conditions:
            self.reader.mistake(node, "when has no condition")
        return tuple(condition for condition in conditions if condition is not None)

    # ------------------------------------------------------------ texts

    def _texts(self, rule: Node, apart: dict[str, Node], names: set[str] | None) -> dict[str, RuleText]:
        if "summary" not in apart:
            self.reader.mistake(rule, '"summary" is missing: the sentence that people are sent')
            return {}
        summary = self._text(apart["summary"], names)
        if summary and not summary["en"]:
            self.reader.mistake(apart["summary"], "the summary is empty: it is the sentence that people are sent")
        description = self._text(apart.get("description"), names)
        advice = [self._text(node, names) for node in self._remedies(apart.get("advice"))]
        return {
            language: RuleText(
                summary=summary.get(language, ""),
                description=description.get(language, ""),
                advice=tuple(remedy[language] for remedy in advice if language in remedy),
            )
            for language in wire.LANGUAGES
        }

    def _remedies(self, node: Node | None) -> list[Node]:
        if node is not None and not _is_list(node) and not _is_null(node):
            self.reader.mistake(node, "advice must be a list")
        return _items(node)

    def _text(self, node: Node | None, names: set[str] | None) -> dict[str, str]:
        """A sentence in every language; a plain string stands for all of them, and a missing one is the English."""
        if node is None:
            return {}
        if isinstance(node, ScalarNode):
            texts = dict.fromkeys(wire.LANGUAGES, "" if _is_null(node) else str(node.value))
        else:
            given = self._attempt(node, _Texts)
            if given is None:
                return {}
            texts = {"en": given.en, "zh": given.zh or given.en}
        self._check_placeholders(node, "".join(texts.values()), names)
        return {language: " ".join(text.split()) for language, text in texts.items()}

    def _check_placeholders(self, node: Node, text: str, names: set[str] | None) -> None:
        """`names` is None where the conditions have mistakes: what they would have known cannot be told."""
        for name in sorted(set(PLACEHOLDER.findall(text)) - names) if names is not None else ():
            self.reader.mistake(node, f"{{{name}}} is not known here; known are {', '.join(sorted(names or ()))}")

    # ------------------------------------------------------------ overrides and notify

    def _check_unique(self, nodes: list[Node]) -> None:
        seen: set[tuple[str, str]] = set()
        for node in nodes:
            key = _alert_and_severity(node)
            if key in seen:
                self.reader.mistake(node, f"{key[0]} ({key[1]}) is defined twice")
            seen.add(key)

    def _overrides(self, node: Node, rules: list[Node]) -> Iterator[Override]:
        """An override for each rule that it names; without a severity it means the alert at all of them."""
        entries = _entries(node)
        for name in entries:
            if name not in ("alert", "severity", "match", "set"):
                self.reader.mistake(node, f'unknown key "{name}"; an override has alert, severity, match and set')
        missing = [name for name in ("alert", "match", "set") if name not in entries]
        if missing:
            self.reader.mistake(node, f"an override needs {', '.join(missing)}")
            return
        match = self._attempt(entries["match"], _Match)
        alert = _word(entries["alert"])
        severity = _word(entries["severity"]) if "severity" in entries else None
        named = [rule for rule in rules if _alert_and_severity(rule) in _wanted(alert, severity)]
        if not named:
            self.reader.mistake(entries["alert"], f'there is no rule "{alert}" to override')
        if not {"alert", "severity"}.isdisjoint(_entries(entries["set"])):
            self.reader.mistake(entries["set"], "set may not change alert or severity: they say which rule is meant")
            return
        for base in named:
            rule = self._rule(merged(base, entries["set"]))
            if rule is not None and match is not None:
                yield Override(rule=rule, node=match.node, run=match.run)

    def _notify(self, node: Node | None) -> NotifyConfig:
        config = self._attempt(node, NotifyConfig) if node is not None else None
        if node is None or not isinstance(config, NotifyConfig):
            return NotifyConfig()
        for place, message in config.mistakes():
            self.reader.mistake(_within(node, place), message)
        return config


def _names(when: tuple[Condition, ...]) -> set[str]:
    """What the texts of a rule with these conditions may mention."""
    return names_of(name for condition in when for name in condition.fact_names)


def _decode(kind: type, value: Any) -> Any:
    if kind is Quantity:
        return parse_quantity(value)
    if kind is Duration:
        return parse_duration(value)
    return decode_notify(kind, value)


def _items(node: Node | None) -> list[Node]:
    return list(node.value) if isinstance(node, SequenceNode) else []


def _within(node: Node, place: Sequence[str | int]) -> Node:
    """What stands there: a key of a mapping, a number of a list, and so on; or as far as the place leads."""
    for step in place:
        inner = _entries(node).get(step) if isinstance(step, str) else dict(enumerate(_items(node))).get(step)
        if inner is None:
            return node
        node = inner
    return node


def _is_list(node: Node) -> bool:
    return isinstance(node, SequenceNode)


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _entries(node: Node) -> dict[str, Node]:
    return {str(key.value): child for key, child in node.value} if isinstance(node, MappingNode) else {}


def _split(node: Node) -> tuple[dict[str, Node], Node]:
    """The parts of a rule that are read apart, and the rule without them."""
    if not isinstance(node, MappingNode):
        return {}, node
    rest = [(key, child) for key, child in node.value if key.value not in _APART]
    apart = {name: child for name, child in _entries(node).items() if name in _APART}
    return apart, MappingNode(node.tag, rest, node.start_mark, node.end_mark)


def _given_again(node: Node) -> Iterator[Node]:
    """Keys of a rule's parts that are read apart, where they stand for the second time."""
    seen: set[str] = set()
    for key, _ in node.value if isinstance(node, MappingNode) else ():
        if key.value in seen and key.value in _APART:
            yield key
        seen.add(key.value)


def _alert_and_severity(node: Node) -> tuple[str, str]:
    entries = _entries(node)
    alert, severity = entries.get("alert"), entries.get("severity")
    return _word(alert) if alert else "", _word(severity) if severity else "warning"


def _word(node: Node) -> str:
    """What a plain value says. Anything else is a mistake that is told where the value is read."""
    return str(node.value) if isinstance(node, ScalarNode) else ""


def _wanted(alert: str, severity: str | None) -> list[tuple[str, str]]:
    return [(alert, one) for one in wire.SEVERITIES if severity in (None, one)]
