"""`oomwatch serve` as a process on a free port of loopback, with a folder for all that it keeps."""

import time
from pathlib import Path
from typing import TypeVar

import httpx
from tests.acceptance.programs import ServerProgram
from tests.server.running_server import DEADLINE_SECONDS, RULES

Self = TypeVar("Self", bound="Program")

# A full card fires at once, and a webhook is told: `RULES_TO.format(url=...)`.
RULES_TO = """
rules:
  - alert: full
    severity: warning
    when: {{kind: threshold, metric: gpu_used_ratio, above: 85%}}
    keep_firing_for: 1s
    summary: "GPU {{gpu}} of {{node}} is {{value}} full"
notify:
  group_wait: 10ms
  channels:
    - {{kind: webhook, name: ops, url: "{url}"}}
"""


class Program:
    """As a context manager it is ready within, and killed at the end."""

    def __init__(self, folder: Path, *arguments: str, files: int | None = None) -> None:
        """`files`: how many it may have open."""
        self.folder = folder
        rules = folder / "alerts.yaml"
        if not rules.exists():
            rules.write_text(RULES, encoding="utf-8")
        limit = ("sh", "-c", f'ulimit -n {files}; exec "$@"', "sh") if files is not None else ()
        self._server = ServerProgram(folder, rules, "--flush-interval", "0.2", *arguments, before=limit)
        self.port, self.url = self._server.port, self._server.url
        self.agents = f"ws://127.0.0.1:{self._server.port}/ws/agent"

    def __enter__(self: Self) -> Self:  # noqa: PYI019 - typing.Self is younger than Python 3.10
        self.start()
        self.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        self._server.start()

    def wait_until_ready(self) -> None:
        self._server.wait_until_ready()

    def kill(self) -> None:
        self._server.end()

    @property
    def pid(self) -> int:
        return self._server.program.pid

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=DEADLINE_SECONDS, trust_env=False)

    def log(self) -> str:
        return self._server.program.output

    def has_ended(self) -> bool:
        return not self._server.program.running

    def stop(self) -> tuple[int, float]:
        """SIGTERM; gives the exit status, and after how many seconds it came."""
        began = time.monotonic()
        status = self._server.program.stop(seconds=DEADLINE_SECONDS)
        return status, time.monotonic() - began
