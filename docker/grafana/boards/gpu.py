"""One node's cards: what they hold, who holds it, and how they fare."""

from boards.board import Board, Variable
from boards.panel import FULLNESS, NONE, Link, Panel, Query, curves, table, value

_OF_GPU = '{node="$node", gpu=~"$gpu"}'
_NAME, _WHOSE = "GPU {{gpu}}", "GPU {{gpu}} {{role}}"


def _each(metric: str) -> str:
    return f"max by (gpu) ({metric}{_OF_GPU})"


_USED, _USABLE = _each("oomwatch_gpu_memory_used_bytes"), _each("oomwatch_gpu_memory_usable_bytes")


def _reading(title: str, unit: str, metric: str, *, most: float | None = None) -> Panel:
    about = "As the card's driver says."
    return curves(title, unit, Query(_each(metric), _NAME), about=about, bounds=(0, most))


BOARD = Board(
    uid="oomwatch-gpu",
    title="oomwatch: GPU",
    about="The GPUs of one node: device memory in use against what is usable, torch's part of it, and the card itself.",
    variables=[
        Variable("node", "Node", "oomwatch_gpu_memory_usable_bytes"),
        Variable("gpu", "GPU", 'oomwatch_gpu_memory_usable_bytes{node="$node"}', several=True),
    ],
    parts=[
        "Now",
        value(
            "Fullest",
            "percentunit",
            Query(f"max({_USED} / {_USABLE})"),
            about="The largest share of usable memory in use.",
            steps=FULLNESS,
            bounds=(0, 1),
        ),
        value("Least headroom", "bytes", Query(f"min({_USABLE} - {_USED})"), about="What is left on the fullest GPU."),
        table(
            "Cards",
            NONE,
            Query(f"max by (gpu, name, uuid, driver) (oomwatch_gpu_info{_OF_GPU})"),
            about="What the GPUs are.",
            width=16,
            hidden=["Value"],
            titles={"gpu": "GPU", "name": "Name", "uuid": "UUID", "driver": "Driver"},
        ),
        "Memory",
        curves(
            "Used against usable",
            "bytes",
            Query(_USED, f"{_NAME} used"),
            Query(_USABLE, f"{_NAME} usable"),
            about="Device memory in use, and, dashed, what a program can get: the whole without what the driver keeps.",
            dashed=".*usable",
        ),
        curves(
            "Share used",
            "percentunit",
            Query(f"{_USED} / {_USABLE}", _NAME),
            about="Device memory in use, of what is usable.",
            bounds=(0, 1),
        ),
        curves(
            "torch: reserved and allocated",
            "bytes",
            Query(
                f"sum by (gpu, run, role) (oomwatch_torch_reserved_bytes{_OF_GPU})", f"{_NAME} {{{{role}}}} reserved"
            ),
            Query(
                f"sum by (gpu, run, role) (oomwatch_torch_allocated_bytes{_OF_GPU})", f"{_NAME} {{{{role}}}} allocated"
            ),
            about="Reserved: what torch's allocator has taken from the device. Allocated, dashed: what tensors hold of "
            "it.",
            dashed=".*allocated",
            link=Link("Show this run", "oomwatch-run", ("run",)),
        ),
        "What comes",
        curves(
            "Full in",
            "s",
            Query(f"min by (gpu) (oomwatch_forecast_full_seconds{_OF_GPU})", _NAME),
            about="Time until the card is full, if it goes on as it did; nothing where it does not fill up.",
            width=12,
        ),
        table(
            "Alerts",
            NONE,
            Query(f"max by (gpu, alert, severity, run) (oomwatch_alert_firing{_OF_GPU})"),
            about="What fires on these cards.",
            hidden=["Value"],
            titles={"gpu": "GPU", "alert": "Alert", "severity": "Severity"},
        ),
        "The card",
        _reading("Utilisation", "percentunit", "oomwatch_gpu_utilization_ratio", most=1),
        _reading("Temperature", "celsius", "oomwatch_gpu_temperature_celsius"),
        _reading("Power", "watt", "oomwatch_gpu_power_watts"),
    ],
)
