"""Bytes to text, and what kind of text it is."""

import re
from typing import NamedTuple

from oomwatch.doctor.read.reading import Complaint, Kind, ReadingError, Source

MOST_BYTES = (
    200_000  # of a script, or of overrides: read in about a second at the worst; verl's scripts have 8 thousand
)
MOST_LOG_BYTES = 512 * 2**20  # of a log, of which the printed configuration alone is read
_WINDOW_BYTES = 3 * 2**19  # of a log, from where the configuration begins
BEGINS = b"{'actor_rollout_ref': {"  # as pprint prints verl's
_A_STEP = re.compile(rb"\bstep:[1-9]\d* - ")  # as verl logs that it has done one
_ODD_RATIO = 0.05  # more control characters than this are in no text
_SAMPLE = 65536
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))

_FENCE = re.compile(r"\s{0,3}(?:```|~~~)[\w+\- ]*\r?")
_YAML_KEY = re.compile(r"(?:[\w$./@\-]+|\"[^\"]*\"|'[^']*')\s*:(?:\s|$)")
_OVERRIDE = re.compile(r"[+~]{0,2}(?:--)?(?:\w+(?:[.@/][\w\-.@/]*)?|/[\w\-.@/]*)=")


class Content(NamedTuple):
    text: str
    kind: Kind
    line: int = 1  # of the source, at which the text begins
    complaints: tuple[Complaint, ...] = ()
    has_run: bool = False  # it is a log that goes on with steps of the run


def content_of(source: Source) -> Content:
    """A source's text and kind. Raises ReadingError for what is no text, or too large to be any of the kinds."""
    data = source.text.encode("utf-8", "replace") if isinstance(source.text, str) else source.text
    start = data.rfind(BEGINS) if len(data) <= MOST_LOG_BYTES else -1
    if start >= 0:
        return _of_log(data, start)
    if len(data) > MOST_BYTES:
        raise ReadingError("too_large", source.name, kilobytes=len(data) // 1000, most_kilobytes=MOST_BYTES // 1000)
    text, complaints = _decoded(data, source.name)
    text = _without_fences(text)
    return Content(text, _kind(text, source.name), complaints=complaints)


def _without_fences(text: str) -> str:
    """Of a page with code in it ("```bash"), as people copy it: what stands in the fences, each on its own line."""
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if _FENCE.fullmatch(line)]
    if not fences or len(fences) % 2 or text.startswith("#!"):
        return text
    kept = [False] * len(lines)
    for start, end in zip(fences[::2], fences[1::2], strict=True):
        kept[start + 1 : end] = [True] * (end - start - 1)
    return "\n".join(line if keep else "" for line, keep in zip(lines, kept, strict=True))


def _of_log(data: bytes, start: int) -> Content:
    """The lines of a log from the one on which the last printed configuration begins."""
    start = data.rfind(b"\n", 0, start) + 1
    text = data[start : start + _WINDOW_BYTES].replace(b"\0", b"").decode("utf-8", "replace")
    return Content(text, "printed", data.count(b"\n", 0, start) + 1, has_run=_A_STEP.search(data, start) is not None)


def _decoded(data: bytes, name: str) -> tuple[str, tuple[Complaint, ...]]:
    encoding = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text, complaints = data.decode(encoding), tuple[Complaint, ...]()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        text = data.decode(encoding, "replace")
        complaints = (Complaint(what="encoding", severity="warning", name=name, line=line),)
    sample = text[:_SAMPLE]
    odd = sum(sample.count(chr(code)) for code in range(32) if chr(code) not in "\t\n\r\f\x1b")
    if "\0" in sample or odd > _ODD_RATIO * len(sample):
        raise ReadingError("binary", name)
    return text, complaints


def _kind(text: str, name: str) -> Kind:
    first = next((line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")), "")
    if text.startswith("#!"):
        return "script"
    if first.startswith(("{", "[")) and not _OVERRIDE.match(first):
        return "printed" if first.startswith("{'") else "json"
    if _YAML_KEY.match(first) or first.startswith(("- ", "---", "%YAML")):
        in_folder = name.replace("\\", "/").rpartition("/")[0].endswith(".hydra")
        if first.startswith("- "):
            return "hydra_overrides"
        return "hydra_folder" if in_folder else "yaml"
    return "overrides" if _OVERRIDE.match(first) else "script"
