"""What programs put around a record on its way into a log, taken off again.

A line of a trainer's log is the record that one process printed, in the envelopes of everything that passed it on:
colour codes (as escape bytes, or as what a terminal, rsyslog or JSON made of them), a collector's timestamp, what
syslog, the journal or dmesg put before a message, Ray's
`(WorkerDict pid=N, ip=A)`, torchrun's `[rank15]:`, a logger's level and time, a progress bar that it was glued to, and
Ray's `[repeated 7x across cluster]` at the end. `unwrap` gives the record and what the envelopes said of its writer.

Order matters to the parsers: they match at the start of the clean text, so text *about* an error inside a record does
not look like the error.
"""

import re

import msgspec

from oomwatch_agent.logs.shipped import record_in

MAX_LINE_CHARS = 64 * 1024  # a step line of verl has 3 to 8 thousand; more is a dumped batch or no text at all

# A colour code as programs write it; as a terminal's caret notation, JSON, a shell, rsyslog or a broken decoder left
# it; and the orphan "[33m" that lost its escape byte. Of orphans only colours, so that "[5]" and "[rank0]" stay.
_COLOUR = re.compile(r"\x1b\[[0-9;:?]*[A-Za-z]")
_ESCAPES_GONE_WRONG = ("^[[", "\\u001b[", "\\x1b[", "\\033[", "#033[", "�[")
_COLOUR_GONE_WRONG = re.compile(
    "(?:" + "|".join(re.escape(escape[:-1]) for escape in _ESCAPES_GONE_WRONG) + r")\[[0-9;:?]*[A-Za-z]"
)
_ORPHAN = re.compile(r"\[\d{1,3}(?:;\d{1,3})*m")
_REPEATED = re.compile(r"\s*\[repeated (\d{1,9})x across (?:all )?(?:the )?cluster\].*$")
_BAR = re.compile(
    r"[\d.?]{1,20}(?:s/it|it/s)\]\s*"  # the end of one, whose beginning was drawn over
    r"|[^|]{0,300}?\d{1,3}%\|[^|]*\|[^\[]{0,60}\[[^\]]*\]\s*"
    r"|[^\[]{0,300}?\d{1,9}it \[[^\]]*\]\s*"
)

_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL)"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_TIME = rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}{_ZONE}?"
_DAY = r"[A-Z][a-z]{2}"  # Sun, Nov
# What syslog and the journal put before a message. Only the kernel, or a program with its pid: after a time of any
# kind "he said: " would look the same.
_FROM_HOST = r"[\w.\-]{1,253} (?:kernel|[\w.\-/@]{1,80}\[\d{1,10}\]): "


def _compiled(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in patterns)


_IN_PARENTHESES = _compiled(
    # Ray and vLLM: (WorkerDict pid=N, ip=A), (VllmWorker rank=0 pid=N), (pid=N), (raylet, ip=A)
    r"\((?:(?P<actor>[A-Za-z_][^()\s,]{0,80}) )?(?:rank=\d+ )?pid=(?P<pid>\d{1,10})(?:, ip=(?P<ip>[\w.:]+))?\) ?",
    r"\((?P<daemon>raylet|gcs_server|autoscaler)(?:,? ip=(?P<ip>[\w.:]+)| \+\S+)?\) ?",
)
_IN_BRACKETS = _compiled(
    # torchrun and torch.distributed
    r"\[rank(?P<rank>\d{1,7})\]:? ?",
    r"\[default\d{1,4}\]: ?",
    r"\[\d+,\d+\]<std(?:out|err)>: ?",  # mpirun --tag-output
    r"\[pod/[^\]]{1,200}\] ",  # kubectl logs --prefix
    r"\[" + _LEVEL + r"\]:? ?",
    # c10's errors: [E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607]. Its warnings stay, so that they are none.
    r"\[[EF](?:\d{1,4} \d\d:\d\d:\d\d\.\d{1,9})? [\w./]{1,80}:\d{1,6}\] ?",
    # [2026-.. E 12 34] of Ray, [2026-.. TP0] of SGLang, [2026-..][module][INFO] - of Hydra
    r"\[" + _TIME + r"[^\]]{0,60}\](?:\[[\w.]+\]\[" + _LEVEL + r"\] - )? ?",
    # The kernel's ring buffer: [ 8812.104312][ T4127] x, its difference with -d, journalctl's short-monotonic
    r"\[ *\d{1,12}\.\d{1,9}(?: <[ +\d.]{1,24}>)?\](?: ?\[ *[TC]\d{1,10}\])? (?:" + _FROM_HOST + ")?",
    rf"\[{_DAY} {_DAY} [ \d]\d {_CLOCK} \d{{4}}\] ",  # dmesg -T
    rf"\[(?:{_DAY}[ \d]\d \d\d:\d\d| *\+\d{{1,9}}\.\d{{1,9}})\] ",  # dmesg -e
)
_AFTER_A_DIGIT = _compiled(
    r"\d{1,5}: (?=\S)",  # srun --label
    r"\d{8}-\d\d:\d\d:\d\d(?:\.\d{1,9})? (?:[\w.\-]{1,60} ){0,2}" + _LEVEL + r": ",  # AReaL
    rf"\d{{4}}-\d\d-\d\dT{_CLOCK}{_ZONE} {_FROM_HOST}",  # rsyslog's files; journalctl -o short-iso
    rf"\d{{9,11}}\.\d{{1,9}} {_FROM_HOST}",  # journalctl -o short-unix
    r"\d{1,3},\d{1,20},\d{1,20},[^;\s]{1,40};",  # /dev/kmsg
    # a collector's or a logger's time, with what may follow it
    _TIME + r"(?: std(?:out|err) [FP])?\s+"
    r"(?:(?:- )?[\w.]+ - " + _LEVEL + r" - |[|\-]? ?" + _LEVEL + r"\s*(?:[\w./]+:\d+ --|\||-|:)? )?",
)
_AFTER_A_CAPITAL = _compiled(
    # DEBUG:module:, DEBUG:2026-07-23 18:43:23,844:, INFO 01-22 09:42:00 [core.py:58]
    _LEVEL + r":(?:[\w.\-]+|" + _TIME + r"):\s?",
    _LEVEL + r" \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[?[\w./]+:\d+\] ?",
    _LEVEL + r"(?: - |: )",
    # syslog, whose programs need no pid; BusyBox's names a facility
    rf"{_DAY} [ \d]\d (?:\d{{4}} )?{_CLOCK} [\w.\-]+ (?:[a-z0-7]{{1,8}}\.[a-z]{{1,8}} )?[\w.\-/]+(?:\[\d+\])?: ",
    rf"{_DAY} \d{{4}}-\d\d-\d\d {_CLOCK} [A-Z+\-\d]{{1,6}} {_FROM_HOST}",  # journalctl -o short-full
)
_AFTER_AN_ANGLE = _compiled(
    # syslog's priority; RFC 5424 names version, time, host, program, pid and message id as well
    rf"<\d{{1,3}}>(?:\d (?:-|{_TIME}) [\w.\-]{{1,253}} [\w.\-/]{{1,60}} [\w\-]{{1,60}} [\w\-]{{1,60}} - )?",
)
_AFTER_A_SMALL_LETTER = _compiled(
    r"kern {0,4}:[a-z]{1,6} {0,4}: ",  # dmesg -x
    r"[\w/]{1,60}\.(?:cc|cpp|py|h):\d+(?:: | - )",  # what stands after the time in a raylet's log, and in slime's
    r"[\w.]{1,80}:[\w<>]{1,60}:\d+ - ",  # and in loguru's
)


def _prefixes_at(letter: str) -> tuple[re.Pattern[str], ...]:
    """The envelopes that can begin with this character: most lines are asked one or two questions."""
    if letter == "(":
        return _IN_PARENTHESES
    if letter == "[":
        return _IN_BRACKETS
    if letter.isdigit():
        return _AFTER_A_DIGIT
    if letter == "<":
        return _AFTER_AN_ANGLE
    return _AFTER_A_CAPITAL if letter.isupper() else _AFTER_A_SMALL_LETTER


_MOST_ENVELOPES = 8  # deeper nesting is no log of this kind, and bounds the work on a hostile line
_ACTOR = re.compile(r"[\w.\-]{1,64}$")


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One record without its envelopes. `text` keeps the record's own indentation."""

    text: str
    pid: int | None = None  # of the innermost envelope: the process that printed it
    actor: str | None = None
    ip: str | None = None
    rank: int | None = None
    repeated: int = 1  # how many records this line stands for


def unwrap(line: str) -> Record:
    """The record in `line`. Never raises; a line without envelopes comes back as it is."""
    text, repeated = _without_repetition(without_colours(record_in(line[:MAX_LINE_CHARS])))
    found: dict[str, str] = {}
    at = 0
    for _ in range(_MOST_ENVELOPES):
        end = _next_envelope(text, at, found)
        if end == at:
            break
        at = end
    return Record(
        text=text[at:].rstrip(),
        pid=int(found["pid"]) if "pid" in found else None,
        actor=_actor(found),
        ip=found.get("ip"),
        rank=int(found["rank"]) if "rank" in found else None,
        repeated=repeated,
    )


def without_colours(text: str) -> str:
    """The text without colour codes, whole or damaged."""
    if "[" not in text:
        return text
    text = _COLOUR.sub("", text)
    if any(escape in text for escape in _ESCAPES_GONE_WRONG):
        text = _COLOUR_GONE_WRONG.sub("", text)
    return _ORPHAN.sub("", text)


def _next_envelope(text: str, at: int, found: dict[str, str]) -> int:
    """Where the record goes on after the envelope that begins at `at`; `at` itself where none does."""
    for prefix in _prefixes_at(text[at]) if at < len(text) else ():
        match = prefix.match(text, at)
        if match is not None and match.end() > at:
            found.update({name: value for name, value in match.groupdict().items() if value is not None})
            return match.end()
    bar = _BAR.match(text, at) if "it/s" in text or "s/it" in text else None
    return at if bar is None else bar.end()


def _actor(found: dict[str, str]) -> str | None:
    """A name that may leave the node: an identifier, never free text."""
    name = found.get("actor") or found.get("daemon")
    return name if name and _ACTOR.match(name) else None


def _without_repetition(text: str) -> tuple[str, int]:
    if "[repeated " not in text:
        return text, 1
    match = _REPEATED.search(text)
    return (text[: match.start()], int(match[1])) if match else (text, 1)
