"""The report on narrow terminals, where a Chinese character takes the room of two others."""

from pathlib import Path

import pytest
from tests.doctor.cases import ACTOR, ARTICLE, given, reading

from oomwatch import wire
from oomwatch.__main__ import main
from oomwatch.doctor.report import make_report
from oomwatch.doctor.show import page_of
from oomwatch.doctor.show.layout import COLUMNS, flowing, laid_out, width

OVERRIDES = (f"{ACTOR}.ppo_micro_batch_size_per_gpu=7", "+data.unheard=1")


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
@pytest.mark.parametrize("language", wire.LANGUAGES)
def test_no_line_is_wider_than_the_terminal_but_for_a_key_that_is_longer(language: wire.Language, columns: int) -> None:
    made = make_report(reading(*OVERRIDES), given("A100 40GB"), language)
    lines = page_of(made, language, columns).splitlines()
    wide = [line for line in lines if width(line) > min(columns, COLUMNS)]
    assert [line for line in wide if "actor_rollout_ref." not in line] == []
    assert all(len(line.removesuffix(" \\").split()) == 1 for line in wide if columns < COLUMNS)


def test_the_width_of_the_terminal_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "train.sh").write_text(ARTICLE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["doctor", "--language", "zh", "--gpu", "A100-40GB", "train.sh"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert max(width(line) for line in lines if "actor_rollout_ref." not in line) <= 40


def test_a_line_that_a_command_goes_on_behind_stays_whole() -> None:
    line = f"  {ACTOR}.use_kl_loss=True \\"
    assert list(laid_out([line], 20)) == [line]


def test_a_paragraph_fills_the_lines_of_any_width() -> None:
    (text,) = flowing("word " * 40, "  ", "    ")
    assert [max(map(width, laid_out([text], columns))) for columns in (24, 48)] == [23, 48]


def test_signs_are_as_wide_as_a_terminal_shows_them() -> None:
    assert [width(text) for text in ("GPU", "显存", "（）", "e\u0301", "\u200b", "█│")] == [3, 4, 4, 1, 0, 2]
