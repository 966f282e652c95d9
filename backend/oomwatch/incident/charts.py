"""The charts of a report, drawn by plotly: time runs towards the failure, which is at 0; bands are the phases.

What is paper and ink is left to the page's style (`LOOK`), which is light or dark as whoever reads it has it.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

import plotly.io

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.incident.panels import GIB, Panel, names
from oomwatch.incident.report import Curve, Incident

HEIGHT_PIXELS = 360
LEGEND_MAX = 24  # more names than that are read in the tooltip
PHASE_COLOURS = {
    "rollout": "#4c78a8",
    "reward": "#72b7b2",
    "old_log_prob": "#eeca3b",
    "ref": "#b279a2",
    "values": "#ff9da6",
    "adv": "#9d755d",
    "update_critic": "#e45756",
    "update_actor": "#f58518",
    "save_checkpoint": "#54a24b",
    "update_weights": "#79706e",
    "validation": "#83bcb6",
    "idle": "#d8d8d8",
}
# Told apart from each other, and from white as from near black.
COLOURS = ("#2f7fd1", "#d1602f", "#2a9d6f", "#a05fc4", "#b0841c", "#c94f7c", "#3f93a8", "#7a8a34")
FAILURE = "#d0343f"
CLEAR = "rgba(0,0,0,0)"
# Plotly writes its colours into each element: these rules stand above them.
LOOK = """\
.js-plotly-plot text{fill:var(--text)!important}
.js-plotly-plot .gridlayer path,.js-plotly-plot .zerolinelayer path{stroke:var(--line)!important}
.js-plotly-plot .hovertext path,.js-plotly-plot .hovertext rect,.js-plotly-plot .axistext path,
.js-plotly-plot .legend .bg{fill:var(--page)!important}
.js-plotly-plot .hovertext path,.js-plotly-plot .axistext path{stroke:var(--muted)!important}
.js-plotly-plot .modebar-group{background:none!important}
.js-plotly-plot .modebar-btn path{fill:var(--muted)!important}"""
_CONFIG = {"displaylogo": False, "responsive": True}


def charts(incident: Incident, panels: Iterable[Panel], language: wire.Language) -> Iterator[tuple[str, str]]:
    """(title, HTML) of each panel; the first one brings plotly.js along, whole."""
    for number, panel in enumerate(panels):
        figure = {
            "data": [_trace(curve, name, incident.at) for curve, name in zip(panel.curves, names(panel), strict=True)],
            "layout": _layout(incident, panel.curves, language),
        }
        yield (
            panel.title,
            plotly.io.to_html(
                figure,
                config=_CONFIG,
                include_plotlyjs=number == 0,
                full_html=False,
                validate=False,
                default_height=f"{HEIGHT_PIXELS}px",
                div_id=f"chart-{number}",
            ),
        )


def _trace(curve: Curve, name: str, zero: float) -> dict[str, Any]:
    scale, digits = (GIB, 3) if curve.unit == "bytes" else (1, 4)
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(curve.at) < LEGEND_MAX else "lines",
        "line": {"width": 1.5},
        "name": escape(name, quote=False),
        "x": [round(at - zero, 1) for at in curve.at],
        "y": [None if value is None else round(value / scale, digits) for value in curve.values],
    }


def _layout(incident: Incident, curves: Sequence[Curve], language: wire.Language) -> dict[str, Any]:
    unit = "GiB" if curves[0].unit == "bytes" else curves[0].unit
    return {
        "colorway": COLOURS,
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "margin": {"l": 60, "r": 20, "t": 10, "b": 40},
        "hovermode": "x" if len(curves) <= LEGEND_MAX else "closest",
        "showlegend": len(curves) <= LEGEND_MAX,
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
        "hoverlabel": {"namelength": -1},
        "xaxis": {"title": {"text": say("incident.before", language)}, "zeroline": False, "automargin": True},
        "yaxis": {"title": {"text": escape(unit, quote=False)}, "rangemode": "tozero"},
        "shapes": [*_bands(incident), *_limits(incident, curves), _failure()],
    }


def _bands(incident: Incident) -> Iterator[dict[str, Any]]:
    for span in incident.phases:
        yield {
            "type": "rect",
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "x0": span.start_at - incident.at,
            "x1": min(0.0, (span.end_at or incident.at) - incident.at),
            "fillcolor": PHASE_COLOURS.get(span.phase, "#cccccc"),
            "opacity": 0.18,
            "line": {"width": 0},
            "layer": "below",
        }


def _limits(incident: Incident, curves: Sequence[Curve]) -> Iterator[dict[str, Any]]:
    """What the cards hold, where the chart is of device memory."""
    if curves[0].series != "gpu_used_bytes":
        return
    for usable_bytes in sorted({card.usable_bytes for card in incident.cards}):
        yield {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": usable_bytes / GIB,
            "y1": usable_bytes / GIB,
            "line": {"color": FAILURE, "width": 1, "dash": "dash"},
        }


def _failure() -> dict[str, Any]:
    return {
        "type": "line",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "x0": 0,
        "x1": 0,
        "line": {"color": FAILURE, "width": 2},
    }
