"""Helm in a process of its own: its engine is a Go program within a library, no guest for a process that forks.

Reads a JSON object a line, {"values": {...}}, and writes one a line: {"files": {path: text}}, or {"refused": why}. With
{"lint": true} it writes what `helm lint --strict` has to say: {"lint": [sentences]}.
"""

import json
import sys
from typing import Any

sys.path.insert(0, sys.argv[1])

import helm_python

CHART, NAME, NAMESPACE = sys.argv[2], "watch", "monitoring"


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    values = asked["values"]
    try:
        if asked.get("lint"):
            report = helm_python.lint(CHART, values, strict=True)
            graver = [one["error"] for one in report["messages"] if one["severity"] > 1]  # 1: for information
            return {"lint": [*graver, *report["errors"]]}
        with helm_python.Chart.load(CHART) as chart:
            chart.validate_schema(values)
            return {"files": chart.render(values, name=NAME, namespace=NAMESPACE)}
    except helm_python.HelmError as error:
        return {"refused": str(error)}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
