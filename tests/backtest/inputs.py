"""Inputs of every kind, small enough to read, and the runs of verl that lie beside the tests."""

import gzip
from collections.abc import Iterable
from pathlib import Path

import msgspec

from oomwatch.backtest.inputs import sources_of
from oomwatch.backtest.result import InputResult, Result
from oomwatch.backtest.run import Tried
from oomwatch.backtest.source import Known, Source
from oomwatch.core.rule import RuleSet
from oomwatch.rulefile import parse_rules

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
GIB = 2**30
RULES = parse_rules(
    """
rules:
  - {alert: full, when: {kind: threshold, metric: gpu_used_ratio, above: 85%}, for: 60s, keep_firing_for: 5m,
     summary: s}
  - {alert: slow, severity: info, when: {kind: jump, metric: rollout_seconds, increase: 200%}, summary: s}
  - {alert: silent, severity: critical, when: {kind: threshold, metric: agent_silent_seconds, above: 30s}, summary: s}
  - {alert: gone, severity: critical, when: {kind: event, of: [device_oom, host_oom]}, summary: s}
"""
).rules


def leak_csv(path: Path, *, rows: int = 60, start_gib: float = 30.0, by_gib: float = 0.5, name: str = "pod0") -> Path:
    """A table of one series that rises by so much every 57 seconds. Packed where the name says so."""
    lines = [f"{name},{57 * row},{int((start_gib + by_gib * row) * GIB)}" for row in range(rows)]
    return write(path, ["series,t_seconds,used_bytes", *lines])


def write(path: Path, lines: Iterable[str]) -> Path:
    text = "\n".join(lines) + "\n"
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def step_line(step: int, *, gen: float = 30.0, update: float = 50.0, envelope: str = "", **more: float) -> str:
    """verl's step line, with two phases that make up the step."""
    figures = {"timing_s/gen": gen, "timing_s/update_actor": update, "timing_s/step": gen + update} | {
        key.replace("__", "/"): value for key, value in more.items()
    }
    return f"{envelope}step:{step} - actor/lr:1e-06 - " + " - ".join(f"{key}:{value}" for key, value in figures.items())


def memory_line(head: str, used_gib: float, *, total_gib: float = 80.0, envelope: str = "") -> str:
    """verl's memory line at DEBUG level."""
    return (
        f"{envelope}DEBUG:verl.workers:{head}, memory allocated (GB): 10.00, memory reserved (GB): 12.00, "
        f"device memory used/total (GB): {used_gib:.2f}/{total_gib:.2f}"
    )


def sources(*paths: Path, known: Known | None = None, together: bool = False) -> list[Source]:
    return sources_of(list(paths), known or Known(), together=together)


def judged(*paths: Path, known: Known | None = None, rules: RuleSet = RULES, together: bool = False) -> Result:
    found = sources(*paths, known=known, together=together)
    return Tried(found, rules, with_readings=False, told=lambda *_: None).result


def only(result: Result) -> InputResult:
    (one,) = result.inputs
    return one


def with_capacity(gib: float) -> Known:
    return Known(capacity_bytes=int(gib * GIB))


def decoded(text: str) -> dict[str, object]:
    found: dict[str, object] = msgspec.json.decode(text)
    return found
