"""Finding the metrics pages of this node's vLLM and SGLang servers without knocking at doors.

Two places tell:
    command lines   a server that was started as a program (`vllm serve`, `python -m sglang.launch_server`), and which
                    of its own listening sockets is the port that it was told (or its default)
    verl            which writes its rollout servers into the configuration of Ray's Prometheus, where
                    actor_rollout_ref.rollout.prometheus.enable is set, on every node
                    (verl/experimental/agent_loop/prometheus_utils.py); those servers are Ray actors, whose command line
                    tells nothing
No port is asked that neither names: a rollout server also listens for gRPC, ZeroMQ and torch's store, which an HTTP
request could upset.
"""

import ipaddress
import re
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from oomwatch import yamltext
from oomwatch_agent.engines.fetch import Endpoint
from oomwatch_agent.hang_guard import HangGuard
from oomwatch_agent.who.addresses import addresses_here
from oomwatch_agent.who.short_names import ShortNames

VERL_FILE = Path("tmp/ray/session_latest/metrics/prometheus/prometheus.yml")  # PrometheusConfig.file's default
_VERL_JOB = "rollout"  # job_name in that file
_MOST_TARGETS, _MOST_BYTES = 64, 256 * 1024
_DEFAULT_PORTS = {"vllm": 8000, "sglang": 30000}
# They say which command lines are worth reading.
_SHORT_NAMES = (b"python", b"pt_main_thread", b"vllm", b"sglang")
_MODULES = (
    "vllm.entrypoints.openai.api_server",
    "vllm.entrypoints.api_server",
    "vllm.entrypoints.cli.main",
    "sglang.launch_server",
)
_LISTENING = "0A"  # TCP_LISTEN in include/net/tcp_states.h
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_LIMIT_SECONDS = 0.5


class Server(NamedTuple):
    """A metrics page, and what is known of who serves it."""

    place: Endpoint
    pid: int | None = None


class Finder:
    """Looks for servers below `root`, the file system. Used by one thread at a time."""

    def __init__(self, root: Path = Path("/"), *, limit_seconds: float = _LIMIT_SECONDS) -> None:
        self._root = root
        self._guard: HangGuard[int, list[str]] = HangGuard(limit_seconds)
        self._candidates = ShortNames(_may_be_engine, root / "proc")

    def find(self) -> tuple[Server, ...]:
        """Every server on this node that names itself, each page once."""
        engines = self._engines()
        targets = verl_targets(_read_small(self._root / VERL_FILE))
        if not engines and not targets:  # of most nodes; the table of sockets is the dearest to read
            return ()
        listening = _listening(self._root / "proc/net")
        found = [*self._programs(engines, listening), *_of_verl(targets, listening)]
        return tuple({server.place: server for server in reversed(found)}.values())[::-1]

    def _engines(self) -> list[tuple[int, str, list[str]]]:
        """Process id, engine and command line of every server that was started as a program."""
        arguments = self._guard.ask(self._candidates.pids(), self._arguments)
        return [(pid, engine, line) for pid, line in sorted(arguments.items()) if (engine := engine_of(line))]

    def _programs(
        self, engines: Sequence[tuple[int, str, list[str]]], listening: Mapping[str, Endpoint]
    ) -> Iterator[Server]:
        for pid, engine, line in engines:
            own = [listening[inode] for inode in self._sockets(pid) if inode in listening]
            place = _http(own, _port(line) or _DEFAULT_PORTS[engine])
            if place is not None:
                yield Server(place, pid)

    def _arguments(self, pid: int) -> list[str]:
        return _read(self._root / "proc" / str(pid) / "cmdline").rstrip("\0").split("\0")

    def _sockets(self, pid: int) -> Iterator[str]:
        """Inodes of a process' sockets; none where it is gone, or another user's."""
        try:
            for entry in (self._root / "proc" / str(pid) / "fd").iterdir():
                match = _SOCKET.fullmatch(str(entry.readlink()))
                if match is not None:
                    yield match[1]
        except OSError:
            return


def _may_be_engine(short_name: bytes) -> bool:
    return short_name.lower().startswith(_SHORT_NAMES)


def _of_verl(targets: Sequence[tuple[str, int]], listening: Mapping[str, Endpoint]) -> Iterator[Server]:
    """The file names the servers of all nodes: those are taken whose address is this node's and open."""
    open_ports = {place.port for place in listening.values()}
    for host, port in targets:
        if port in open_ports and host in own_addresses():
            yield Server(Endpoint(host, port))


def engine_of(arguments: Sequence[str]) -> str | None:
    """ "vllm" or "sglang" where this command line starts one of their HTTP servers."""
    for first, second in zip(arguments, [*arguments[1:], ""], strict=True):
        name = first.rpartition("/")[2]
        if first == "-m" and second in _MODULES:
            return second.partition(".")[0]
        if name in _DEFAULT_PORTS and second == "serve":
            return name
    return None


def _port(arguments: Sequence[str]) -> int | None:
    for first, second in zip(arguments, [*arguments[1:], ""], strict=True):
        text = second if first == "--port" else first.removeprefix("--port=") if first.startswith("--port=") else ""
        if text.isdigit():
            return int(text)
    return None


def _http(own: Sequence[Endpoint], port: int) -> Endpoint | None:
    """Which of a server's listening sockets speaks HTTP: that at its port, or the only one (its file says the port)."""
    at_port = [place for place in own if place.port == port]
    if at_port:
        return at_port[0]
    return own[0] if len(own) == 1 else None


def verl_targets(text: str) -> list[tuple[str, int]]:
    """Hosts and ports of the job "rollout" in a Prometheus configuration; none in anything else."""
    if _VERL_JOB not in text:
        return []
    try:
        document = yamltext.load(text)
    except yamltext.YamlTextError:  # it is being written
        return []
    targets = [
        target
        for job in _listed(document, "scrape_configs")
        if isinstance(job, dict) and job.get("job_name") == _VERL_JOB
        for group in _listed(job, "static_configs")
        for target in _listed(group, "targets")
    ]
    return [address for target in targets[:_MOST_TARGETS] if (address := _host_and_port(str(target))) is not None]


def _listed(parent: object, key: str) -> list[object]:
    value = parent.get(key) if isinstance(parent, dict) else None
    return value if isinstance(value, list) else []


def _host_and_port(text: str) -> tuple[str, int] | None:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    return (host, int(port)) if host and port.isdigit() and 0 < int(port) < 65536 else None  # noqa: PLR2004 - TCP's


def own_addresses() -> frozenset[str]:
    """What this node can be called by its own processes."""
    return frozenset({*(address for _, address in addresses_here()), "localhost", socket.gethostname()})


def _listening(net: Path) -> dict[str, Endpoint]:
    """Listening TCP sockets of this network namespace, by inode, each with an address to reach it at."""
    places = {}
    for table in ("tcp", "tcp6"):
        for line in _read(net / table).splitlines()[1:]:
            cells = line.split()
            if len(cells) > 9 and cells[3] == _LISTENING:  # noqa: PLR2004 - the tenth cell is the inode
                address, _, port = cells[1].rpartition(":")
                places[cells[9]] = Endpoint(_reachable(address), int(port, 16))
    return places


def _reachable(hexadecimal: str) -> str:
    """The kernel writes addresses as 32-bit words in the machine's order; one that is bound to all is asked at home."""
    words = (int(hexadecimal[start : start + 8], 16) for start in range(0, len(hexadecimal), 8))
    address = ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = mapped or address
    if not address.is_unspecified:
        return str(address)
    return "127.0.0.1" if address.version == 4 else "::1"  # noqa: PLR2004


def _read_small(path: Path) -> str:
    """A file that any user may have put there: only a real file, and only its beginning."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:  # gone, or another user's
        return ""
