"""Debian's own Prometheus and Alertmanager, as processes on free loopback ports with a temporary folder each.

    with prometheus(scraping(server.url)) as real:
        real.wait_for("oomwatch_agent_up == 1")

    with alertmanager(ROUTE) as receiver:
        receiver.wait_for_alerts(1)

Where a program is missing the test that asks for it is skipped, and the reason says how to get it (`need`).
"""

import contextlib
import shutil
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from tests.asking import answer_of
from tests.missing import do_without
from tests.ports import free_port

DEADLINE_SECONDS = 60.0
# Debian's packages by the program that each brings.
PACKAGES = {
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "amtool": "prometheus-alertmanager",
}
SCRAPE_SECONDS = 1
CONFIG = "config.yml"
T = TypeVar("T")


def need(program: str) -> str:
    """The program's path. Skips the test where it is missing, or fails it where CI=true."""
    return shutil.which(program) or do_without(program, f"apt-get install {PACKAGES.get(program, program)}")


def until(what: str, look: Callable[[], T | None], *, seconds: float = DEADLINE_SECONDS) -> T:
    """What `look` finds, as soon as it finds something true. Raises AssertionError in words at the deadline."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain for {what}"
        time.sleep(0.05)  # between two looks, never instead of one
    return found


class Process:
    """A server of another project: its address, its folder, and what it has said."""

    def __init__(self, program: str, arguments: Iterable[str], folder: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.folder = folder
        self._log = folder / "output.log"
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [need(program), *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=folder,
            )

    @property
    def output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """Kill it: nothing it holds is worth a farewell. May be called twice."""
        self._process.kill()
        self._process.wait()

    def get(self, path: str, **parameters: str) -> Any:
        """The answer to a GET, decoded from JSON. Raises OSError; AssertionError with the reason of a refusal."""
        return msgspec.json.decode(self.page(f"{path}?{urllib.parse.urlencode(parameters)}"))

    def page(self, path: str) -> str:
        """The answer to a GET as text. Raises as `get` does."""
        status, said = answer_of(f"{self.url}{path}")
        assert status == HTTPStatus.OK, f"{path}: {said.decode()}"
        return said.decode()

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, f"it ended at once:\n{self.output}"
        try:
            return answer_of(f"{self.url}/-/ready")[0] == HTTPStatus.OK
        except OSError:
            return False


class Series(NamedTuple):
    """One series of an instant query's answer."""

    labels: Mapping[str, str]  # with __name__ where the answer has one
    value: float


class Prometheus(Process):
    """A Prometheus that is ready."""

    def query(self, expression: str) -> list[Series]:
        """What an instant query says now; a scalar is one series without labels. Raises AssertionError if refused."""
        data = self.get("/api/v1/query", query=expression)["data"]
        if data["resultType"] in ("scalar", "string"):
            return [Series({}, float(data["result"][1]))]
        return [Series(one["metric"], float(one["value"][1])) for one in data["result"]]

    def wait_for(self, expression: str, *, seconds: float = DEADLINE_SECONDS) -> list[Series]:
        """The answer, once there is one that is not empty."""
        return until(f"an answer to {expression}", lambda: self.query(expression), seconds=seconds)

    def alerts(self) -> list[dict[str, Any]]:
        """Alerts of its own rules that are pending or firing: labels, annotations, state, activeAt, value."""
        return list(self.get("/api/v1/alerts")["data"]["alerts"])

    def metric_names(self) -> set[str]:
        """Every metric that it has ever scraped or recorded."""
        return set(self.get("/api/v1/label/__name__/values")["data"])


class Alertmanager(Process):
    """An Alertmanager that is ready."""

    def alerts(self) -> list[dict[str, Any]]:
        """All alerts it holds, as /api/v2/alerts has them; resolved ones are not among them."""
        return list(self.get("/api/v2/alerts"))

    def wait_for_alerts(self, count: int, *, seconds: float = DEADLINE_SECONDS) -> list[dict[str, Any]]:
        """The alerts, once there are as many."""
        until(f"{count} alerts", lambda: len(self.alerts()) == count, seconds=seconds)
        return self.alerts()


@contextlib.contextmanager
def prometheus(
    config_text: str, *, flags: Iterable[str] = (), files: Mapping[str, str] = {}, resend_delay: str = "1s"
) -> Iterator[Prometheus]:
    """A Prometheus with this configuration. `files`: more files, by name, beside it: those that rule_files names.

    It learns of its Alertmanagers some seconds after its start, and an alert that fires before is sent to nobody. So it
    sends what fires again each second instead of each minute, unless `resend_delay` says otherwise.
    """
    with _folder(config_text, files) as folder:
        port = free_port()
        arguments = [f"--config.file={CONFIG}", f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.path=data"]
        arguments.append(f"--rules.alert.resend-delay={resend_delay}")
        yield from _running(Prometheus("prometheus", [*arguments, *flags], folder, port))


@contextlib.contextmanager
def alertmanager(config_text: str, *, flags: Iterable[str] = ()) -> Iterator[Alertmanager]:
    """An Alertmanager with this configuration, that looks for no others."""
    with _folder(config_text, {}) as folder:
        port = free_port()
        arguments = [f"--config.file={CONFIG}", f"--web.listen-address=127.0.0.1:{port}", "--storage.path=data"]
        yield from _running(
            Alertmanager("prometheus-alertmanager", [*arguments, "--cluster.listen-address=", *flags], folder, port)
        )


def scraping(
    *urls: str,
    alertmanagers: Iterable[str] = (),
    rule_files: Iterable[str] = (),
    scrape_interval: str = f"{SCRAPE_SECONDS}s",
    evaluation_interval: str = f"{SCRAPE_SECONDS}s",
) -> str:
    """A configuration for `prometheus`: scrape /metrics of these addresses, each second unless told otherwise."""
    hosts = [url.removeprefix("http://") for url in urls]
    managers = [url.removeprefix("http://") for url in alertmanagers]
    config = {
        "global": {"scrape_interval": scrape_interval, "evaluation_interval": evaluation_interval},
        "scrape_configs": [{"job_name": "oomwatch", "static_configs": [{"targets": hosts}]}],
        "rule_files": list(rule_files),
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": managers}]}]},
    }
    return msgspec.json.encode(config).decode()  # JSON is YAML


def promtool(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """What promtool says of files in a folder; it is for the test to look at its exit status."""
    return subprocess.run([need("promtool"), *arguments], cwd=folder, capture_output=True, text=True, check=False)


@contextlib.contextmanager
def _folder(config_text: str, files: Mapping[str, str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="oomwatch-", ignore_cleanup_errors=True) as folder:
        for name, text in {**files, CONFIG: config_text}.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        yield Path(folder)


P = TypeVar("P", bound=Process)


def _running(process: P) -> Iterator[P]:
    try:
        until(f"{process.url} to be ready", process._is_ready)
        yield process
    finally:
        process.stop()
