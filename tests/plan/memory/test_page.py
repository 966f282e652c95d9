"""docs/reference/estimator.md says what the formulas say today."""

from pathlib import Path

from bench.estimator import tables

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/estimator.md"


def test_the_pages_tables_are_what_the_benchmark_prints() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join(tables("markdown")) in page, "write it anew with python -m bench.estimator --markdown"
