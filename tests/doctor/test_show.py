"""The text of a report: nothing of a formula is cut, and what `tight` means stands beside it."""

from tests.doctor.cases import ROLLOUT, report

from oomwatch.doctor.show import page_of


def test_no_formula_is_cut() -> None:
    made = report()
    worst = next(one for one in made.memory if one.phase == made.peak_phase)
    page = " ".join(page_of(made, "en").split())
    assert any(len(part.formula) > 40 for part in worst.parts)
    assert "…" not in page
    for part in worst.parts:
        assert part.formula.split()[-1] in page


def test_tight_is_explained_where_it_is_said_and_has_one_word() -> None:
    tight = report(f"{ROLLOUT}.gpu_memory_utilization=0.75")
    assert "tight" in {one.verdict for one in tight.memory}
    assert "beyond 97 % of what is usable" in page_of(tight, "en")
    assert "很紧：预期值放得下" in page_of(tight, "zh")
    assert "勉强" not in page_of(tight, "zh")
