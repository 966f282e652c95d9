"""The few pieces of PromQL that are written from more than one place."""

from collections.abc import Iterable

from oomwatch.units import format_duration


def selector(metric: str, matchers: Iterable[str] = ()) -> str:
    """`metric{a="b",c=~"d"}`"""
    inside = ",".join(matchers)
    return f"{metric}{{{inside}}}" if inside else metric


def matcher(label: str, operator: str, value: str) -> str:
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{label}{operator}"{escaped}"'


def number(value: float) -> str:
    return f"{value:.12g}"


def span(seconds: float) -> str:
    """A duration as Prometheus takes it: whole seconds, at least one."""
    return format_duration(max(1, round(seconds)))


def regex_of(pattern: str) -> str:
    """A shell pattern as a regular expression of Prometheus, which is always held against the whole value (RE2)."""
    found, index = [], 0
    while index < len(pattern):
        character, index = pattern[index], index + 1
        end = pattern.find("]", index + 1) if character == "[" else -1
        if character in "*?":
            found.append({"*": ".*", "?": "."}[character])
        elif end > 0:
            inside, index = pattern[index:end], end + 1
            inside = "^" + inside[1:] if inside.startswith("!") else inside.replace("^", r"\^")
            found.append("[" + inside.replace("[", r"\[") + "]")
        else:
            found.append("\\" + character if character in r"\.+()|{}^$[]" else character)
    return "".join(found)
