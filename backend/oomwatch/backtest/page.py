"""The result of a backtest as one HTML file that needs nothing else: the tables, and each input's memory and alerts."""

from collections.abc import Iterator, Sequence
from html import escape

import plotly.graph_objects as go
from plotly.io import to_html

from oomwatch.backtest.drive import Driven
from oomwatch.backtest.result import AlertResult, InputResult, Result
from oomwatch.backtest.table import side_by_side, table_of
from oomwatch.units import counted

INPUTS_DRAWN_MAX = 60  # each chart costs some 100 kB
POINTS_MAX = 3000  # of a line: more are drawn as the peak and the floor of a slice
GIB = 2**30
_COLOURS = {"info": "#3b82c4", "warning": "#d98e04", "critical": "#c23b3b"}

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1c2430;
  background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2.5rem }
pre { overflow-x: auto; background: #f4f6f8; padding: 1rem; border-radius: 6px; font-size: 13px }
table { border-collapse: collapse; font-size: 14px } td, th { padding: .3rem .8rem; text-align: left;
  border-bottom: 1px solid #dde2e8 } th { font-weight: 600 }
.info { color: #3b82c4 } .warning { color: #a86e00 } .critical { color: #c23b3b }
"""


def page_of(names: Sequence[str], results: Sequence[Result], driven: Sequence[Sequence[Driven]]) -> str:
    """The page. `names` are those of the rule files, `driven` what each was given, with its readings."""
    text = table_of(results[0]) if len(results) == 1 else side_by_side(names, results)
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f"<title>oomwatch backtest</title><style>{_STYLE}</style></head><body>",
            f"<h1>oomwatch backtest</h1><p>Rules: {escape(', '.join(names))}</p>",
            f"<pre>{escape(text)}</pre>",
            *_sections(names, results, driven),
            "</body></html>",
        ]
    )


def _sections(names: Sequence[str], results: Sequence[Result], driven: Sequence[Sequence[Driven]]) -> Iterator[str]:
    """Each input, those with something to see first."""
    places = sorted(range(len(results[0].inputs)), key=lambda place: not _tells(results, place))
    for order, place in enumerate(places[:INPUTS_DRAWN_MAX]):
        inputs = [result.inputs[place] for result in results]
        yield f"<h2>{escape(inputs[0].name)}</h2>"
        for name, one, ran in zip(names, inputs, (each[place] for each in driven), strict=True):
            if len(results) > 1:
                yield f"<h3>{escape(name)}</h3>"
            figure = _figure(one, ran)
            first = order == 0 and one is inputs[0]
            yield to_html(figure, full_html=False, include_plotlyjs=first, config={"displaylogo": False})
            yield _alert_table(one)
    if len(places) > INPUTS_DRAWN_MAX:
        more = counted(len(places) - INPUTS_DRAWN_MAX, "more input", "more inputs")
        yield f"<p>Not drawn: {more}; the table above has all.</p>"


def _tells(results: Sequence[Result], place: int) -> bool:
    return any(result.inputs[place].alerts or result.inputs[place].oom_at_s is not None for result in results)


def _figure(one: InputResult, ran: Driven) -> go.Figure:
    figure = go.Figure()
    start = ran.watched.began_at or 0.0
    for subject, points in ran.watched.readings.items():
        times, values = _thinned(points)
        figure.add_trace(
            go.Scatter(
                x=[round((at - start) / 60, 4) for at in times], y=[round(value / GIB, 3) for value in values],
                mode="lines", name=subject, line={"width": 1.2},
            )
        )  # fmt: skip
    for usable_bytes in sorted(set(ran.watched.gpus.values())):
        figure.add_hline(y=usable_bytes / GIB, line={"color": "#888", "dash": "dot"}, annotation_text="capacity")
    for alert in one.alerts:
        _mark(figure, alert, one)
    if one.oom_at_s is not None:
        figure.add_vline(x=one.oom_at_s / 60, line={"color": "#000", "width": 2}, annotation_text="out of memory")
    figure.update_layout(
        template="plotly_white", height=340, margin={"l": 60, "r": 20, "t": 30, "b": 45},
        xaxis={"title": "minutes"}, yaxis={"title": "GiB in use", "rangemode": "tozero"}, showlegend=True,
    )  # fmt: skip
    return figure


def _mark(figure: go.Figure, alert: AlertResult, one: InputResult) -> None:
    """The time during which an alert was open."""
    ended_s = one.duration_s if alert.ended_at_s is None else alert.ended_at_s
    figure.add_vrect(
        x0=alert.started_at_s / 60,
        x1=max(ended_s, alert.started_at_s) / 60,
        fillcolor=_COLOURS[alert.severity],
        opacity=0.12,
        line={"width": 1, "color": _COLOURS[alert.severity]},
        annotation={"text": alert.alert, "font": {"size": 10}, "textangle": 90},
        annotation_position="top left",
    )


def _thinned(points: Sequence[tuple[float, int]]) -> tuple[list[float], list[int]]:
    """A line of at most POINTS_MAX points that keeps every peak and floor of its slices."""
    size = -(-2 * len(points) // POINTS_MAX)
    if size <= 1:
        return [at for at, _ in points], [value for _, value in points]
    kept: list[tuple[float, int]] = []
    for first in range(0, len(points), size):
        part = points[first : first + size]
        extremes = {min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])}
        kept += sorted(extremes)
    return [at for at, _ in kept], [value for _, value in kept]


def _alert_table(one: InputResult) -> str:
    if not one.alerts:
        return "<p>No alert.</p>"
    head = "".join(f"<th>{name}</th>" for name in ("fired", "ended", "severity", "alert", "subject", "says", "cause"))
    return f"<table><tr>{head}</tr>{''.join(_alert_row(alert) for alert in one.alerts)}</table>"


def _alert_row(alert: AlertResult) -> str:
    ended = "open" if alert.ended_at_s is None else f"{alert.ended_at_s / 60:.1f} min"
    cells = (
        f"{alert.started_at_s / 60:.1f} min", ended, alert.severity, alert.alert, alert.subject, alert.summary,
        alert.cause or "",
    )  # fmt: skip
    return f'<tr class="{alert.severity}">' + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
