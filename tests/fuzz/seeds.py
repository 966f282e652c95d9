"""Whole inputs that a search begins with: what is shipped, recorded, or printed by ourselves."""

import typing
from array import array
from collections.abc import Iterator
from pathlib import Path

from oomwatch.doctor.templates import templates, versions
from oomwatch.doctor.templates.printed import Format, printed
from oomwatch.store.columns import Columns, pack, pack_tight
from oomwatch_agent.logs.engines import PATTERNS as ENGINE_PATTERNS
from oomwatch_agent.logs.table import PATTERNS
from oomwatch_agent.logs.trainers import TRAINERS

ROOT = Path(__file__).resolve().parents[2]
SEED_BYTES = 1024  # of one: short ones are tried more often within an hour
NOW_MS = 1_700_000_000_000


def files(*patterns: str) -> Iterator[bytes]:
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            yield path.read_bytes()[:SEED_BYTES]


def lines_of_logs() -> Iterator[bytes]:
    for example in [*(one.example for one in PATTERNS), *(line for one in TRAINERS for line in one.example)]:
        yield b"\xff" + example.encode() + b"\n"


def lines_of_engines() -> Iterator[bytes]:
    yield from (b"\xff" + one.example.encode() + b"\n" for one in ENGINE_PATTERNS)


def rule_files() -> Iterator[bytes]:
    """Each rule that is shipped, as a file of its own."""
    _, *rules = (ROOT / "alerts.yaml").read_text(encoding="utf-8").split("\n  - alert:")
    yield from (f"rules:\n  - alert:{one}"[:SEED_BYTES].encode() for one in rules)


def traces() -> Iterator[bytes]:
    for path in sorted((ROOT / "tests/replay/traces").glob("*.jsonl")):
        lines = path.read_bytes().splitlines(keepends=True)
        yield from (b"".join(lines[at : at + 4]) for at in range(0, min(len(lines), 200), 20))
    yield b'{"excused":8.5}\n{"jumped":-3600.0}\n{"forgotten":12.5}\n{"now":12.5,"retired":"a"}\n{"advance":13.0}\n'


def configurations() -> Iterator[bytes]:
    """What the doctor itself offers to begin with, in every form, and what a trainer prints."""
    for template in templates():
        for form in typing.get_args(Format):
            yield printed(template, versions()[-1], form, "en")[:SEED_BYTES].encode()
    yield from files("tests/fixtures/*/driver.log")


def chunks() -> Iterator[bytes]:
    at_ms = array("q", [NOW_MS + 1000 * second for second in range(20)])
    nan = float("nan")
    values = tuple(
        array("f", [nan if second % skip == 0 else second * skip for second in range(20)]) for skip in (1, 3, 7)
    )
    for write in (pack, pack_tight):
        yield write(Columns(at_ms, values))
        yield write(Columns(at_ms[:1], ()))
