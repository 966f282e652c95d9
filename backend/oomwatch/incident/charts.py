"""The charts of a report, drawn by plotly: time runs towards the failure, which is at 0; bands are the phases."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import plotly.io

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.incident.report import Curve, Incident

GIB = 2**30
HEIGHT_PIXELS = 360
LEGEND_MAX = 24  # more names than that are read in the tooltip
# What belongs together, most telling first; the rest is drawn by its unit.
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gpu", ("gpu_used_bytes",)),
    ("torch", ("torch_reserved_bytes", "torch_allocated_bytes", "torch_device_used_bytes")),
    ("host", ("host_memory_used_bytes", "host_cgroup_used_bytes", "host_swap_used_bytes", "host_shm_used_bytes")),
    ("disk", ("host_disk_used_bytes",)),
    ("engine", ("kv_cache_used_ratio",)),
)
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
_CONFIG = {"displaylogo": False, "responsive": True}


def charts(incident: Incident, language: wire.Language) -> Iterator[tuple[str, str]]:
    """(title, HTML) of each chart; the first one brings plotly.js along, whole."""
    for number, (title, curves) in enumerate(_grouped(incident.curves, language)):
        figure = {
            "data": [_trace(curve, incident.at) for curve in curves],
            "layout": _layout(incident, curves, language),
        }
        yield (
            title,
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


def _grouped(curves: Sequence[Curve], language: wire.Language) -> Iterator[tuple[str, list[Curve]]]:
    named = {series for _, of_group in GROUPS for series in of_group}
    for group, of_group in GROUPS:
        members = [curve for curve in curves if curve.series in of_group]
        if members:
            yield say(f"incident.chart_{group}", language), members
    others = [curve for curve in curves if curve.series not in named]
    for series in dict.fromkeys(curve.series for curve in others):
        yield series, [curve for curve in others if curve.series == series]


def _trace(curve: Curve, zero: float) -> dict[str, Any]:
    scale, digits = (GIB, 3) if curve.unit == "bytes" else (1, 4)
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(curve.at) < LEGEND_MAX else "lines",
        "line": {"width": 1.5},
        "name": escape(_name(curve), quote=False),
        "x": [round(at - zero, 1) for at in curve.at],
        "y": [None if value is None else round(value / scale, digits) for value in curve.values],
    }


def _name(curve: Curve) -> str:
    place = " ".join(f"{label} {value}" for label, value in curve.labels.items())
    return f"{place} · {curve.series}"


def _layout(incident: Incident, curves: Sequence[Curve], language: wire.Language) -> dict[str, Any]:
    unit = "GiB" if curves[0].unit == "bytes" else curves[0].unit
    return {
        "margin": {"l": 60, "r": 20, "t": 10, "b": 40},
        "hovermode": "x" if len(curves) <= LEGEND_MAX else "closest",
        "showlegend": len(curves) <= LEGEND_MAX,
        "legend": {"orientation": "h", "y": -0.3},
        "xaxis": {"title": {"text": say("incident.before", language)}, "zeroline": False},
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
            "line": {"color": "#b00020", "width": 1, "dash": "dash"},
        }


def _failure() -> dict[str, Any]:
    return {
        "type": "line",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "x0": 0,
        "x1": 0,
        "line": {"color": "#b00020", "width": 2},
    }
