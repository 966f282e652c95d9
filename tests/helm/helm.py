"""The chart as Helm renders it."""

import json
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/oomwatch"
NAME, NAMESPACE = "watch-oomwatch", "monitoring"  # tests/helm/renderer.py renders the release "watch"
PATIENCE_SECONDS = 120.0  # for one answer, on a machine however busy

Object = dict[str, Any]


class Rendered(NamedTuple):
    objects: list[Object]
    notes: str

    def one(self, kind: str, name: str) -> Object:
        """The object of a kind whose name is that of the release and this."""
        full = f"{NAME}-{name}" if name else NAME
        (found,) = [one for one in self.objects if one["kind"] == kind and one["metadata"]["name"] == full]
        return found

    def of_kind(self, kind: str) -> list[Object]:
        return [one for one in self.objects if one["kind"] == kind]

    @property
    def pods(self) -> dict[str, Object]:
        """The pods' specifications, by component."""
        owners = [*self.of_kind("StatefulSet"), *self.of_kind("DaemonSet")]
        templates = [one["spec"]["template"] for one in owners]
        return {one["metadata"]["labels"]["app.kubernetes.io/component"]: one["spec"] for one in templates}

    def settings(self, component: str) -> str:
        """The settings file of server or agent."""
        return str(self.one("ConfigMap", component)["data"]["settings.yaml"])


class RefusedError(Exception):
    """Helm does not take the values; says why."""


class Helm:
    """The renderer's process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def render(self, values: Mapping[str, Any]) -> Rendered:
        """Raises RefusedError."""
        told = self._ask({"values": values})
        if "refused" in told:
            raise RefusedError(told["refused"])
        files: dict[str, str] = told["files"]
        notes = next(text for path, text in files.items() if path.endswith("NOTES.txt"))
        texts = [text for path, text in sorted(files.items()) if not path.endswith(("NOTES.txt", ".tpl"))]
        objects = [one for text in texts for one in yaml.load_all(text, yaml.CSafeLoader) if one is not None]
        return Rendered(objects, notes)

    def lint(self, values: Mapping[str, Any]) -> list[str]:
        return list(self._ask({"values": values, "lint": True})["lint"])

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        deadline = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        deadline.start()
        answer = self._process.stdout.readline()
        deadline.cancel()
        assert answer, f"the renderer has ended, or had no answer within {PATIENCE_SECONDS:.0f} s"
        found: dict[str, Any] = json.loads(answer)
        return found
