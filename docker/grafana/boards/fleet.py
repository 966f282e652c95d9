"""The whole fleet: what has least room left, what fires, who is heard."""

from boards.board import Board, Variable
from boards.panel import (
    FULLNESS,
    GOOD_AT_ONE,
    GOOD_AT_ZERO,
    NONE,
    SOON,
    Link,
    Query,
    curves,
    states,
    table,
    value,
)

# Two servers may be scraped for one fleet, so that Prometheus' own labels go first.
_USED = 'max by (node, gpu) (oomwatch_gpu_memory_used_bytes{node=~"$node"})'
_USABLE = 'max by (node, gpu) (oomwatch_gpu_memory_usable_bytes{node=~"$node"})'
_HOST_USED = 'max by (node) (oomwatch_host_memory_used_bytes{node=~"$node"})'
_FULL_IN = 'min by (node, gpu, place) (oomwatch_forecast_full_seconds{node=~"$node"})'
_HOST_LIMIT = 'max by (node) (oomwatch_host_memory_limit_bytes{node=~"$node"})'
_RUN_OF_GPU = "group by (node, gpu, run) (oomwatch_gpu_run)"
_TO_GPU = Link("Show this GPU", "oomwatch-gpu", ("node", "gpu"))
_TO_RUN = Link("Show this run", "oomwatch-run", ("run",))

BOARD = Board(
    uid="oomwatch-fleet",
    title="oomwatch: fleet",
    about="GPU and host memory of all nodes and runs: where least is left, what is about to run out, what fires.",
    variables=[Variable("node", "Node", "oomwatch_agent_up", several=True)],
    parts=[
        "Now",
        value(
            "Alerts firing",
            NONE,
            Query("sum(max by (alert, severity) (oomwatch_alerts_firing))"),
            about="Alerts that fire now, of all rules.",
            steps=GOOD_AT_ZERO,
        ),
        value(
            "Least GPU headroom",
            "bytes",
            Query(f"min({_USABLE} - {_USED})"),
            about="What is left on the GPU that has least left.",
        ),
        value(
            "Fullest GPU",
            "percentunit",
            Query(f"max({_USED} / {_USABLE})"),
            about="The largest share of usable memory that is in use on any GPU.",
            steps=FULLNESS,
            bounds=(0, 1),
        ),
        value(
            "Fullest host",
            "percentunit",
            Query(f"max({_HOST_USED} / {_HOST_LIMIT})"),
            about="The largest share of its memory limit that any host uses.",
            steps=FULLNESS,
            bounds=(0, 1),
        ),
        value(
            "Agents heard",
            "percentunit",
            Query('avg(max by (node) (oomwatch_agent_up{node=~"$node"}))'),
            about="Share of the agents that are heard. Those that stopped on purpose do not count.",
            steps=GOOD_AT_ONE,
            bounds=(0, 1),
        ),
        value(
            "Next to run out",
            "s",
            Query(f"min({_FULL_IN})"),
            about="Time until the first card, host or disk is full, if it goes on as it did.",
            steps=SOON,
            nothing="Nothing",
        ),
        "Headroom",
        curves(
            "Least headroom of a node's GPUs",
            "bytes",
            Query(f"min by (node) ({_USABLE} - {_USED})", "{{node}}"),
            about="Usable device memory that is not in use, on each node's fullest GPU.",
        ),
        curves(
            "Least headroom of a run's GPUs",
            "bytes",
            Query(f"min by (run) (({_USABLE} - {_USED}) * on (node, gpu) group_right () {_RUN_OF_GPU})", "{{run}}"),
            about="Usable device memory that is not in use, on the fullest GPU of each run.",
            link=_TO_RUN,
        ),
        curves(
            "Host memory used",
            "percentunit",
            Query(f"{_HOST_USED} / {_HOST_LIMIT}", "{{node}}"),
            about="Share of the limit of the machine or its container, whichever is nearer.",
            bounds=(0, 1),
        ),
        "Alerts",
        table(
            "Firing",
            NONE,
            Query('max by (alert, severity, node, gpu, run) (oomwatch_alert_firing{node=~"$node|"})'),
            about="Each alert that fires, and on what.",
            hidden=["Value"],
            titles={"alert": "Alert", "severity": "Severity"},
        ),
        curves(
            "Alerts over time",
            NONE,
            Query(
                "sum by (severity, state) (max by (alert, severity, state) (oomwatch_alerts))", "{{severity}} {{state}}"
            ),
            about="Alerts by severity and state; pending ones are dashed.",
            width=12,
            dashed=".*pending",
        ),
        "What runs out",
        table(
            "Next to run out",
            "s",
            Query(f"bottomk(20, {_FULL_IN})"),
            about="Time until it is full, if it goes on as it did. A series is here only while something fills up.",
            steps=SOON,
            titles={"Value": "Full in", "place": "What"},
            highest_first=False,
        ),
        table(
            "Fullest GPUs",
            "percentunit",
            Query(f"topk(20, {_USED} / {_USABLE})"),
            about="Share of usable memory in use. A click opens the GPU's dashboard.",
            steps=FULLNESS,
            link=_TO_GPU,
            titles={"Value": "Used"},
        ),
        "Agents",
        states(
            "Agents",
            Query('max by (node) (oomwatch_agent_up{node=~"$node"})', "{{node}}"),
            {0: ("silent", "red"), 1: ("heard", "green")},
            about="Whether each node's agent is heard.",
            width=24,
        ),
    ],
)
