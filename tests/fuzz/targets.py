"""Everything that reads what others wrote, each as a function of bytes: it is understood or refused with a sentence.

A target returns for both, and raises for anything else: what it raises is a defect of ours. `guided.py` looks for such
bytes by coverage, `test_corpus.py` tries those that once showed something new, in every test run.
"""

import contextlib
import os
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
from tests.fuzz.seeds import (
    NOW_MS,
    ROOT,
    chunks,
    configurations,
    files,
    lines_of_engines,
    lines_of_logs,
    rule_files,
    traces,
)

from oomwatch import wire
from oomwatch.core.engine import Engine
from oomwatch.core.mute.matcher import labels_of, matches, matches_everything, parse_matcher, text_of
from oomwatch.core.rule import RuleSet
from oomwatch.doctor.read import Complaint, ReadingError, Source, read
from oomwatch.doctor.read.words import words_of
from oomwatch.options import SettingError
from oomwatch.rulefile import RuleFileError, parse_rules
from oomwatch.service.silences import Wish, silence_of
from oomwatch.store.columns import ColumnsError, pack, unpack
from oomwatch.trace import TraceError, give, read_trace
from oomwatch_agent.engines.exposition import MalformedMetricsError, parse
from oomwatch_agent.engines.names import WANTED, samples
from oomwatch_agent.logs.reader import LineReader, Recognised
from oomwatch_agent.logs.splitter import LineSplitter
from oomwatch_agent.own_patterns import mistake_in
from oomwatch_agent.probe import report
from oomwatch_agent.settings import AgentSettings, command_line, settled

NOW = 1_700_000_000.0
SMALL_RELEASE = "0.4"  # of verl: a quarter of the newest's settings, and so half the time of a case
ROWS_SHOWN = 10_000  # of a chunk of history that is read and written again


class Target(NamedTuple):
    """`seeds` are whole inputs to begin with, `words` what is worth putting into others."""

    attempt: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    words: tuple[str, ...] = ()
    is_json: bool = False  # each line of it: values are put in place of others
    longest_bytes: int = 4096


class Alert(NamedTuple):
    """An alert, as far as silences look at it."""

    alert: str = "full"
    severity: wire.Severity = "critical"
    labels: dict[str, str] = {"node": "gpu-07", "gpu": "0", "run": "r"}  # noqa: RUF012 - a tuple's own, never changed


# ---------------------------------------------------------------- what goes over the network


def frame(content: bytes) -> None:
    """A message of the wire is the same when it is sent on."""
    for decode in (wire.decode_agent, wire.decode_server):
        try:
            message = decode(content)
        except wire.MalformedMessageError:
            continue
        if not isinstance(message, wire.Unknown):
            assert decode(wire.encode(message)) == message


def probe_datagram(content: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert len(report.decode(content).gpu_names()) >= 0


def metrics_page(content: bytes) -> None:
    """Prometheus' text format, as vLLM and SGLang serve it: what is told of an engine goes over the wire."""
    try:
        found = samples(parse(content.decode(errors="replace"), WANTED), "127.0.0.1:8000")
    except MalformedMetricsError:
        return
    sample = wire.Sample(seq=1, at=NOW, gpus=(), engines=found)
    assert wire.decode_agent(wire.encode(sample)) == sample


# ---------------------------------------------------------------- logs


def log(content: bytes) -> None:
    """A log in blocks of the length that its first byte says: every event of it goes over the wire."""
    reader, splitter = LineReader(), LineSplitter()
    block_bytes, rest = 1 + (content[0] if content else 0), content[1:]
    found: list[Recognised] = []
    for at in range(0, len(rest), block_bytes):
        found += reader.read(splitter.feed(rest[at : at + block_bytes]))
    for one in [*found, *reader.read(splitter.flush()), *reader.end()]:
        event = wire.Event(seq=1, at=1.0, body=one.body, run=one.run, origin=one.origin("x.log"))
        assert wire.decode_agent(wire.encode(event)) == event


# ---------------------------------------------------------------- what people write


def rule_file(content: bytes) -> None:
    told = "fine"
    try:
        parse_rules(content.decode(errors="replace"))
    except RuleFileError as error:
        told = "".join(one.message for one in error.mistakes)
    assert told


def silence(content: bytes) -> None:
    """A silence as JSON, else a matcher: what is taken is written as it was read, and looks at alerts."""
    try:
        wish = msgspec.json.decode(content, type=Wish)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        _matcher(content.decode(errors="replace"))
        return
    try:
        made = silence_of(wish, NOW, "0123")
    except ValueError as error:
        _is_a_sentence(error)
        return
    assert made.ends_at > made.starts_at >= NOW
    assert msgspec.json.decode(msgspec.json.encode(made), type=wire.Silence) == made
    matches(made.matchers, labels_of(Alert()))
    matches_everything(made.matchers)


def _matcher(text: str) -> None:
    try:
        made = parse_matcher(text)
    except ValueError as error:
        _is_a_sentence(error)
        return
    if len(written := text_of(made)) <= len(text):
        assert parse_matcher(written) == made
    matches([made], labels_of(Alert()))


def configuration(content: bytes) -> None:
    """What the doctor is given: a configuration and, after a NUL, overrides."""
    text, *overrides = content.decode(errors="replace").split("\0")
    assert_told([Source("-", text)], overrides, None if len(content) % 4 == 0 else SMALL_RELEASE)


def assert_told(sources: list[Source], overrides: list[str], version: str | None = None) -> None:
    """Read or refused, with words for all that is to be said of it, and values that JSON takes."""
    told: tuple[Complaint | ReadingError, ...]
    try:
        reading = read(sources, overrides, version)
    except ReadingError as error:
        told = (error,)
    else:
        told = reading.complaints
        assert msgspec.json.encode([reading.config, reading.inputs])
    assert all(words_of(one, language).remedy for one in told for language in wire.LANGUAGES)


def agent_settings(content: bytes) -> None:
    """A settings file of the agent."""
    try:
        settings = settled(_command_line(_written(content, "agent.yaml")), {}).settings
    except SettingError as error:
        _is_a_sentence(error)
        return
    assert isinstance(settings, AgentSettings)
    assert mistake_in(settings.patterns) is None


# ---------------------------------------------------------------- what we wrote ourselves, long ago or on a bad disk


def trace(content: bytes) -> None:
    """Lines that an engine was given: an engine takes them without a defect, and what it says can be written."""
    engine = Engine(_rules())
    try:
        for line in read_trace(_written(content, "trace.jsonl")):
            assert msgspec.json.encode(give(engine, line))
    except TraceError as error:
        _is_a_sentence(error)
    assert not engine.defects, engine.defects[0].error


def history(content: bytes) -> None:
    """A chunk of history: what can be read can be written, and reads the same."""
    try:
        columns = unpack(NOW_MS, content)
    except ColumnsError:
        return
    if 0 < len(columns.at_ms) <= ROWS_SHOWN and _is_ours(columns.at_ms):
        again = unpack(columns.at_ms[0], pack(columns))
        assert (again.at_ms, list(map(bytes, again.values))) == (columns.at_ms, list(map(bytes, columns.values)))


def _is_ours(at_ms: "Iterable[int]") -> bool:
    """Whether the times are as `pack` takes them: forward, and never farther apart than its steps are wide."""
    return all(0 <= after - before < 2**32 for before, after in pairwise(at_ms))


# ---------------------------------------------------------------- helpers


def _is_a_sentence(error: Exception) -> None:
    assert str(error)


@cache
def _rules() -> RuleSet:
    return parse_rules((ROOT / "alerts.yaml").read_text(encoding="utf-8")).rules


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    shared = Path("/dev/shm")  # noqa: S108 - written a million times: in memory where there is one to be had
    return tempfile.TemporaryDirectory(prefix="oomwatch-fuzz-", dir=shared if os.access(shared, os.W_OK) else None)


@cache
def _command_line(config: Path) -> Namespace:
    """Taken apart once: it is always the same."""
    return command_line().parse_args(["--config", str(config)])


def _written(content: bytes, name: str) -> Path:
    path = Path(_folder().name) / name
    path.write_bytes(content)
    return path


TARGETS = {
    "frame": Target(
        frame,
        lambda: files("tests/wire/v1/*.json"),
        ("null", "-1", "1e999", "9007199254740993", '"type":', '"seq":', '"at":', '"\\u0000"', '"\\ud800"', "[]", "{}"),
        is_json=True,
    ),
    "probe_datagram": Target(
        probe_datagram,
        lambda: [b'{"v":1,"pid":7,"devices":[]}'],
        ('"devices":', '"uuid":', "null", "-1", "1e999"),
        is_json=True,
    ),
    "metrics_page": Target(
        metrics_page,
        lambda: files("tests/agent/fixtures/*.prom"),
        (*sorted(WANTED), "NaN", "+Inf", "\\n", 'model_name="'),
    ),
    "trainer_log": Target(
        log,
        lines_of_logs,
        ("step:", " - ", "timing_s/gen:", "(a pid=1) ", "\x1b[36m", "{'actor_rollout_ref': {", "\r"),
        longest_bytes=1024,
    ),
    "engine_log": Target(
        log,
        lines_of_engines,
        ("GiB", "GB", "MiB", "%", "token usage: ", "avail mem=", "1e999", "nan"),
        longest_bytes=1024,
    ),
    "rule_file": Target(
        rule_file,
        rule_files,
        ("rules:", "\n  - alert: a", "\n    when: ", "{kind: threshold", "for: ", "&a ", "*a", "<<: ", "!!int ",
         "\nnotify:\n  channels:\n    - ", "\noverrides:\n  - ", "\nmuting:\n", "{gpu}", "85%", "above: "),
        longest_bytes=1024,
    ),
    "silence": Target(
        silence,
        lambda: [
            b'{"match":["node=\\"gpu-07\\""],"duration":"2h","created_by":"lin"}',
            b'{"match":["severity=~\\".*\\""],"ends_at":1700003600.0,"created_by":"lin","note":"a\\nb"}',
            b'node="gpu-07"', b'severity=~"warning|critical"', b"run!~a.*",
        ],
        ("alert", "severity", "node", "gpu", "run", "=~", "!~", "!=", '\\"', "(?i)", "{1000}", '"starts_at":', "1e999"),
        is_json=True,
    ),
    "configuration": Target(
        configuration,
        configurations,
        ("python3 -m verl.trainer.main_ppo ", "${", "oc.env:", "$((", "<<EOF", "\0", "data.a=1", "defaults:", "!!",
         "&a ", "actor_rollout_ref:", "trainer.n_gpus_per_node=", "'", '"', "??"),
        longest_bytes=1024,
    ),
    "agent_settings": Target(
        agent_settings,
        lambda: [
            b"server: monitor:8642\nnode: gpu-07\ninterval: 1s\nlog: [/var/log/x.log]\n",
            b"patterns:\n  - {name: a, contains: 'mem[after]', match: 'step (?P<step>\\d+)'}\n",
        ],
        ("server: ", "patterns:\n", "cpu_budget: ", "engines: ", "token_file: ", "(?P<", "1e999", "ws://[", "&a", "*a"),
        longest_bytes=512,
    ),
    "trace": Target(
        trace,
        traces,
        ('"advance":', '"now":', '"jumped":', '"excused":', '"message":', '"restored":', "1e12", "-1", "null\n"),
        is_json=True,
    ),
    "history": Target(history, chunks, ("\x01", "\x02", "\x03", "\xff\xff\xff\xff"), longest_bytes=1024),
}  # fmt: skip
