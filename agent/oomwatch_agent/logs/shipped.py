"""Log records that a shipper wrote as JSON lines: Docker, Kubernetes' agents, structured loggers, the journal.

A line of JSON is a log record only if it says when or how it was logged, and is none if it holds what data sets and
rollouts hold: a file of samples may have a "message", and that is text of a model.
"""

import re

import msgspec

_TEXTS = ("log", "message", "msg", "MESSAGE")  # Docker's, most others', Go's, the journal's
_MARKS = tuple(f'"{name}"' for name in _TEXTS)
_TIMES = ("time", "timestamp", "@timestamp", "ts", "t", "asctime", "datetime", "date", "__REALTIME_TIMESTAMP")
_LEVELS = ("level", "levelname", "severity", "log.level", "lvl")
_A_TIME = re.compile(r"\d{4}-\d\d-\d\d|\d{4}/\d\d/\d\d|\d{9,20}(?:\.\d+)?$")
# A data set's "level" is a difficulty: "Level 5".
_A_LEVEL = re.compile(r"(?:trace|debug|info|notice|warn|warning|error|err|crit|critical|fatal|panic)$", re.IGNORECASE)
_EARLIEST_UNIX = 1e8  # seconds; smaller numbers are none of a clock
_OF_SAMPLES = frozenset(
    (
        "prompt", "prompts", "response", "responses", "output", "outputs", "input", "inputs", "completion",
        "completions", "generation", "messages", "conversation", "conversations", "reward", "rewards", "score",
        "scores", "gts", "ground_truth", "question", "answer", "problem", "solution", "instruction", "reward_model",
    )
)  # fmt: skip


def record_in(line: str) -> str:
    """The text inside a JSON log record; any other line as it is. Never raises."""
    if not line.startswith("{") or not any(mark in line for mark in _MARKS):
        return line
    try:
        fields = msgspec.json.decode(line, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return line
    if _is_of_samples(fields) or not _was_logged(fields):
        return line
    inner = next((text for name in _TEXTS if isinstance(text := fields.get(name), str)), line)
    return inner.rstrip("\r\n")


def _is_of_samples(fields: dict[str, object]) -> bool:
    """Whether it has a field of a sample. Filebeat's "input" is an object, and tells where a record came from."""
    return any(not isinstance(fields[name], dict) for name in _OF_SAMPLES & fields.keys())


def _was_logged(fields: dict[str, object]) -> bool:
    """Whether the record says when, how or on which stream it was logged."""
    return (
        fields.get("stream") in ("stdout", "stderr")
        or any(_is_level(fields.get(name)) for name in _LEVELS)
        or any(_is_time(fields.get(name)) for name in _TIMES)
    )


def _is_level(raw: object) -> bool:
    return isinstance(raw, str) and _A_LEVEL.match(raw) is not None


def _is_time(raw: object) -> bool:
    if isinstance(raw, str):
        return _A_TIME.match(raw) is not None
    return isinstance(raw, int | float) and not isinstance(raw, bool) and raw >= _EARLIEST_UNIX
