"""A report draws what changed and tells the rest in words, in a page that is light or dark as its reader has it."""

import re
from collections.abc import Sequence

import pytest

from oomwatch import wire
from oomwatch.incident.page import page
from oomwatch.incident.panels import GIB, Panel, flat_rows, names, panels
from oomwatch.incident.report import Curve, Incident


def curve(series: str, values: Sequence[float | None], unit: str = "bytes", **labels: str) -> Curve:
    at = tuple(float(second) for second in range(len(values)))
    return Curve(series=series, unit=unit, labels=labels, step_seconds=1.0, at=at, values=tuple(values))


def report(*curves: Curve) -> Incident:
    return Incident(
        id="20260101T000000Z-00000000", at=900.0, written_at=930.0, version="0", node="n", run="r", simulated=False,
        summary={"en": "out of memory"}, nodes=("n",), cards=(), cards_left_out=0, alerts=(), messages=(), causes=(),
        remedies=(), advice={}, phases=(), steps=(), config={}, curves=curves,
    )  # fmt: skip


USED = curve("gpu_used_bytes", [40.0 * GIB, 75.0 * GIB], node="n", gpu="0")
HOST = curve("host_memory_used_bytes", [12.3 * GIB, 12.3 * GIB], node="n")
POWER = curve("gpu_power_watts", [300.0, 611.0], "watts", node="n", gpu="0")
HEAT = curve("gpu_temperature_celsius", [60.0, 66.0], "celsius", node="n", gpu="0")


def words(panel: Panel) -> list[tuple[str, str, str]]:
    return list(flat_rows(panel, "en"))


def test_what_changed_stands_first_the_telling_before_what_changed_most() -> None:
    shown = panels([HOST, HEAT, POWER, USED], "en")
    assert [one.title for one in shown] == [
        "Device memory", "gpu_power_watts", "gpu_temperature_celsius", "Host memory",
    ]  # fmt: skip
    assert [one.is_flat for one in shown] == [False, False, False, True]


@pytest.mark.parametrize(
    ("values", "unit", "said"),
    [
        ([12.3 * GIB] * 3, "bytes", "stayed at 12.3 GiB"),
        ([12.0 * GIB, None, 12.11 * GIB], "bytes", "stayed between 12.0 GiB and 12.1 GiB"),
        ([0.0, 2.0**20], "bytes", "stayed at 0.0 GiB"),  # a mebibyte of swap
        ([0.931, 0.934], "ratio", "stayed at 93 %"),
        ([500.0, 500.0], "watts", "stayed at 500 W"),
        ([None, None], "celsius", "nothing was read"),
        ([0.0, 0.0], "count", "stayed at 0"),
    ],
)
def test_a_flat_curve_is_a_line_of_words(values: Sequence[float | None], unit: str, said: str) -> None:
    (panel,) = panels([curve("x", values, unit, node="n")], "en")
    assert panel.is_flat
    assert words(panel) == [("x", "node n", said)]


def test_curves_are_called_by_their_place_and_by_their_series_where_there_are_several() -> None:
    (one,) = panels([USED], "en")
    assert names(one) == ["node n gpu 0"]
    swap = curve("host_swap_used_bytes", [0.0, 9.0 * GIB], node="n")
    (several,) = panels([HOST, swap], "en")
    assert names(several) == ["node n · host_memory_used_bytes", "node n · host_swap_used_bytes"]


def test_one_event_in_a_counter_is_no_flat_curve() -> None:
    (panel,) = panels([curve("host_oom_kill_total", [7.0, 7.0, 8.0], "count", node="n")], "en")
    assert not panel.is_flat


def test_of_many_cards_one_that_moves_has_them_all_drawn() -> None:
    still = [curve("gpu_used_bytes", [70.0 * GIB] * 2, node="n", gpu=str(gpu)) for gpu in range(1, 8)]
    (panel,) = panels([USED, *still], "en")
    assert (panel.is_flat, len(panel.curves)) == (False, 8)


def test_many_flat_curves_of_a_kind_are_one_line() -> None:
    cards = [curve("gpu_used_bytes", [amount * GIB] * 2, node="n", gpu=str(amount)) for amount in (10, 11)]
    (panel,) = panels(cards, "en")
    assert words(panel) == [
        ("gpu_used_bytes", "2 places", "each stayed as it was, between 10.0 GiB and 11.0 GiB")
    ]  # fmt: skip


def test_every_series_is_drawn_or_told_once() -> None:
    text = page(report(USED, HOST, POWER, HEAT), "en")
    assert text.count('class="plotly-graph-div"') == 3
    assert re.search(r"<code>host_memory_used_bytes</code></td><td>node n</td><td>stayed at 12\.3 GiB", text)


@pytest.mark.parametrize("language", wire.LANGUAGES)
def test_a_report_in_which_nothing_changed_has_words_alone_and_no_plotly(language: wire.Language) -> None:
    text = page(report(HOST), language)
    assert {"en": "stayed at 12.3 GiB", "zh": "一直为 12.3 GiB"}[language] in text
    assert "<script" not in text


def test_the_page_is_dark_where_its_reader_is_and_light_on_paper() -> None:
    style = re.findall(r"<style>(.*?)</style>", page(report(USED), "en"), re.DOTALL)[0]
    assert "@media screen and (prefers-color-scheme:dark)" in style
    colours = re.findall(r"#[0-9a-f]{3,6}", re.sub(r"--\w+:#[0-9a-f]+", "", style))
    assert colours == []  # each has a value for either
