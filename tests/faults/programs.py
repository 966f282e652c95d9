"""`oomwatch serve` as a process on a free port of loopback, with a folder for all that it keeps."""

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TypeVar

import httpx
from tests.ports import free_port
from tests.server.running_server import DEADLINE_SECONDS, ENVIRON, RULES, until

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
        self.port = free_port()
        self._arguments = arguments
        self._files = files
        self._process: subprocess.Popen[bytes] | None = None
        if not (folder / "alerts.yaml").exists():
            (folder / "alerts.yaml").write_text(RULES, encoding="utf-8")

    def __enter__(self: Self) -> Self:  # noqa: PYI019 - typing.Self is younger than Python 3.10
        self.start()
        self.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        options = ["--listen", f"127.0.0.1:{self.port}", "--db", str(self.folder / "oomwatch.db")]
        options += ["--rules", str(self.folder / "alerts.yaml"), "--flush-interval", "0.2", *self._arguments]
        limit = ["sh", "-c", f'ulimit -n {self._files}; exec "$@"', "sh"] if self._files is not None else []
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*limit, sys.executable, "-m", "oomwatch", "serve", *options], stdout=log, stderr=log, env=ENVIRON
            )

    def wait_until_ready(self) -> None:
        until("the server to be ready", self._is_ready)

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log()
        with contextlib.suppress(httpx.HTTPError):
            return self.get("/readyz").status_code == 200
        return False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def agents(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws/agent"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=DEADLINE_SECONDS, trust_env=False)

    def log(self) -> str:
        return (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")

    def has_ended(self) -> bool:
        assert self._process is not None
        return self._process.poll() is not None

    def stop(self) -> tuple[int, float]:
        """SIGTERM; gives the exit status, and after how many seconds it came."""
        assert self._process is not None
        began = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(DEADLINE_SECONDS)
        return status, time.monotonic() - began

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
