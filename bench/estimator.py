"""How far the memory estimate is from published measurements, and how often its interval and its verdict are right.

    python -m bench.estimator [--markdown | --moved | --crossed]

Each row of tests/plan/published: a run that somebody else measured, put into the terms of the formulas. Nothing is
timed. --markdown draws the tables of docs/reference/estimator.md. --moved moves each constant that was judged rather
than counted by a quarter. --crossed chooses these constants by one half of the rows and holds them against the other.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from statistics import mean, median
from types import ModuleType

from bench._options import parser_of
from tests.plan.published.row import GIB, Fit, Peak
from tests.plan.published.table import FITS, PEAKS, UNMATCHED, halves, peaks

from oomwatch.plan.memory import activations, context, kv, logits
from oomwatch.plan.memory.whole import estimate_of_setup

# Constants that were chosen by measurements: all others follow from a format or an algorithm.
JUDGED: dict[str, ModuleType] = {
    "GAPS_RATIO": context,
    "GAPS_OF_LASTING_RATIO": context,
    "LEFT_BEHIND_RATIO": context,
    "SELECTIVE_RATIO": activations,
    "SAMPLER_BYTES": kv,
    "OUTSIDE_BYTES": kv,
    "CROSS_ENTROPY": logits,
    "LOG_PROBS": logits,
}
FACTORS = (0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)


def peak_row(peak: Peak) -> tuple[str, ...]:
    low, high = (peak.expected_gib * (1 + off) for off in (-peak.reach.below, peak.reach.above))
    mark = "" if peak.is_inside else "outside"
    figures = (
        f"{peak.measured_gib:.2f}",
        f"{peak.expected_gib:.2f}",
        f"{low:.1f} to {high:.1f}",
        f"{peak.error_ratio:+.1%}",
    )
    reading = peak.reading if peak.setup is not None else "one part"
    return (peak.row, peak.settings, reading, *figures, mark)


def fit_row(fit: Fit) -> tuple[str, ...]:
    estimate = estimate_of_setup(fit.setup, round(fit.capacity_gib * GIB))
    worst = estimate.peak
    said = estimate.verdict.replace("_", " ")
    truth = "ran" if fit.ran else "out of memory"
    peak = f"{worst.expected_bytes / GIB:.1f} of {fit.capacity_gib:g} in {worst.phase}"
    return (fit.row, fit.settings, truth, said, peak, "" if fit.is_right else "wrong")


def summary() -> Iterator[tuple[str, ...]]:
    first, second = halves()
    of_runs = tuple(peak for peak in PEAKS if peak.setup is not None)
    groups = {"first half": first, "second half": second, "peaks of runs alone": of_runs, "all": PEAKS}
    for name, rows in groups.items():
        off = median(abs(peak.error_ratio) for peak in rows)
        inside = sum(peak.is_inside for peak in rows)
        yield (name, str(len(rows)), f"{off:.1%}", f"{inside} ({inside / len(rows):.0%})")


def verdicts() -> str:
    right = sum(fit.is_right for fit in FITS)
    return f"{right} of {len(FITS)} ({right / len(FITS):.0%})"


PEAK_HEAD = ("row", "settings", "reading", "measured GiB", "expected GiB", "interval", "error", "")
FIT_HEAD = ("row", "settings", "what became of it", "said", "expected peak, GiB", "")
SUMMARY_HEAD = ("rows", "how many", "median error", "inside the interval")


def markdown(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def aligned(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    table = [head, *rows]
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def tables(form: str) -> Iterator[str]:
    draw = markdown if form == "markdown" else aligned
    yield from draw(SUMMARY_HEAD, summary())
    yield ""
    yield f"Verdicts that were right: {verdicts()}, counting tight as one that runs."
    yield ""
    yield from draw(PEAK_HEAD, (peak_row(peak) for peak in PEAKS))
    yield ""
    yield from draw(FIT_HEAD, (fit_row(fit) for fit in FITS))
    yield ""
    yield from draw(("row", "why it is not among them"), sorted(UNMATCHED.items()))


@contextmanager
def moved(factors: Mapping[str, float]) -> Iterator[None]:
    """With constants multiplied, for as long as it lasts."""
    before = {name: getattr(JUDGED[name], name) for name in factors}
    for name, factor in factors.items():
        setattr(JUDGED[name], name, before[name] * factor)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(JUDGED[name], name, value)


def score(rows: Iterable[Peak]) -> tuple[str, str]:
    known = tuple(rows)
    off, inside = median(abs(peak.error_ratio) for peak in known), sum(peak.is_inside for peak in known)
    return f"{off:.1%}", f"{inside} of {len(known)}"


def sensitivity() -> Iterator[tuple[str, ...]]:
    for name in JUDGED:
        for factor in (0.75, 1.25):
            with moved({name: factor}):
                yield (name, f"x {factor}", *score(peaks()))


def chosen_by(half: int) -> dict[str, float]:
    """The factors by which one half is met best, one constant after the other, twice over."""

    def off(factors: Mapping[str, float]) -> float:
        with moved(factors):
            return mean(abs(peak.error_ratio) for peak in halves(peaks())[half])

    best = dict.fromkeys(JUDGED, 1.0)
    for name in (*JUDGED, *JUDGED):
        best[name] = min(FACTORS, key=lambda factor: off({**best, name: factor}))
    return best


def crossed() -> Iterator[tuple[str, ...]]:
    for half in (0, 1):
        best = chosen_by(half)
        with moved(best):
            scores = [score(rows) for rows in halves(peaks())]
        chosen = ", ".join(f"{name} x {factor:g}" for name, factor in best.items() if factor != 1) or "none moved"
        yield (f"half {half + 1}", chosen, *scores[half], *scores[1 - half])


def main() -> None:
    parser = parser_of(__doc__)
    shape = parser.add_mutually_exclusive_group()
    for name in ("--markdown", "--moved", "--crossed"):
        shape.add_argument(name, action="store_true")
    asked = parser.parse_args()
    if asked.moved:
        shown = aligned(("constant", "", "median error", "inside"), sensitivity())
    elif asked.crossed:
        shown = aligned(("chosen by", "constants", "its own", "inside", "the other half", "inside"), crossed())
    else:
        shown = tables("markdown" if asked.markdown else "aligned")
    for line in shown:
        print(line)


if __name__ == "__main__":
    main()
