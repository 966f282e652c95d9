"""The agent's settings: from flags, environment, YAML file and defaults, read and checked once at the start."""

import argparse
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec

from oomwatch import __version__, wire
from oomwatch.options import Resolved, SettingError, add_options, option, resolve
from oomwatch.units import Duration
from oomwatch_agent.acts.permit import AUTO_FOLDER, Permit
from oomwatch_agent.credentials import Credentials
from oomwatch_agent.engines.fetch import endpoint
from oomwatch_agent.own_patterns import OwnPattern, mistake_in
from oomwatch_agent.scenario import SCENARIOS

DEFAULT_SERVER = "ws://127.0.0.1:8642"
AGENT_PATH = "/ws/agent"
_DEFAULT_PORT = 8642
_SCHEMES = {"ws": "ws", "http": "ws", "wss": "wss", "https": "wss"}
_INTERVAL_BOUNDS_SECONDS = (0.1, 3600.0)
_CPU_BUDGET_MAX = 100.0  # percent of a core
_FASTEST_SECONDS = 0.02  # a driver that is asked more often is a load of its own
_MAX_SIMULATED_GPUS = 64
_HOOK_BOUNDS_SECONDS = (1.0, 3600.0)

LogFrom: TypeAlias = Literal["auto", "start", "now"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]

_DESCRIPTION = """\
Reads what this node's GPUs, its memory and its training logs say, once a second, and streams it to an oomwatch server,
which warns before memory runs out. Needs no root and changes nothing on the node: run one on every GPU node."""

_EXAMPLES = """\
examples:
  oomwatch-agent --server gpu-monitor:8642
      watch this node: GPUs, memory, and the logs of a Ray session where there is one
  oomwatch-agent --server gpu-monitor:8642 --check
      say what is found here and whether the server takes it, then stop
  oomwatch-agent --log train.log --run qwen7b-grpo
      also follow a training log (verl's console output), as the run "qwen7b-grpo"
  python train.py 2>&1 | tee train.log | oomwatch-agent --log -
      the same, from a pipe
  oomwatch-agent run -- python3 -m verl.trainer.main_ppo ...
      start a training that tells this node's agent what torch holds in each of its processes
  oomwatch-agent parse train.log
      print what is recognised in a log, and why it says nothing; send nothing
  oomwatch-agent --simulate demo
      no GPU at hand: send a simulated node, marked as simulated everywhere

A flag is stronger than the environment, which is stronger than the file of --config."""


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set. Names are flags, environment variables and file keys at once."""

    server: Annotated[str, option("the server's address; HOST:PORT is enough", metavar="URL")] = DEFAULT_SERVER
    token: Annotated[str | None, option("token that the server asks of agents", metavar="TOKEN", secret=True)] = None
    tls_ca: Annotated[
        Path | None,
        option(
            "authorities to know the server's certificate by, a PEM file; without it those of the system",
            metavar="FILE",
        ),
    ] = None
    tls_cert: Annotated[
        Path | None, option("certificate to show to the server, a PEM file (mutual TLS)", metavar="FILE")
    ] = None
    tls_key: Annotated[Path | None, option("its private key, where it is not in the same file", metavar="FILE")] = None
    node: Annotated[str, option("name of this node; auto is the host's name", metavar="NAME")] = "auto"
    run: Annotated[str | None, option("name of the training run, where its logs do not tell", metavar="NAME")] = None
    interval: Annotated[Duration, option("time between two readings", metavar="SECONDS")] = Duration(1)
    fastest: Annotated[
        Duration,
        option("shortest time between two looks at memory that fills; the interval or more: none", metavar="SECONDS"),
    ] = Duration(0.1)
    cpu_budget: Annotated[
        float,
        option(
            "CPU that the agent may use, in percent of a core at a reading a second; 0: no limit", metavar="PERCENT"
        ),
    ] = 1.0
    log: Annotated[
        tuple[str, ...],
        option("training log to follow: a file, a quoted glob, or - for standard input", metavar="FILE"),
    ] = ()
    log_from: Annotated[
        LogFrom, option("where to begin in a log that exists already: auto, start or now", metavar="WHERE")
    ] = "auto"
    ray: Annotated[
        str,
        option("logs of a Ray session: auto finds this node's, off, or the session's folder", metavar="auto|off|DIR"),
    ] = "auto"
    engine_metrics: Annotated[
        tuple[str, ...],
        option(
            "metrics page of a vLLM or SGLang server: auto finds this node's, off, or an address",
            metavar="auto|off|HOST:PORT",
        ),
    ] = ("auto",)
    probe: Annotated[
        str,
        option("socket that probes within the trainer send to: auto, off, or a path", metavar="auto|off|PATH"),
    ] = "auto"
    slurm: Annotated[
        str,
        option("folder to which Slurm's prolog and epilog write which jobs are here (deploy/slurm)", metavar="off|DIR"),
    ] = "off"
    allow_acts: Annotated[
        tuple[wire.ActName, ...],
        option(
            "what a server may have done here before a process dies: memory_snapshot, stacks, hook", metavar="ACT,..."
        ),
    ] = ()
    hook: Annotated[Path | None, option("your own executable for the act hook; an absolute path", metavar="PATH")] = (
        None
    )
    hook_limit: Annotated[Duration, option("time after which the hook is killed", metavar="SECONDS")] = Duration(60)
    acts_dir: Annotated[str, option("folder for the files that acts write", metavar="auto|DIR")] = "auto"
    patterns: Annotated[
        tuple[OwnPattern, ...],
        option("your own log lines, in the settings file only: name, contains, match", only_in_file=True),
    ] = ()
    simulate: Annotated[
        str,
        option(
            f"send a simulated node instead of this one: {', '.join(SCENARIOS)}; auto: demo if there is no GPU",
            metavar="auto|off|SCENARIO",
        ),
    ] = "off"
    simulate_gpus: Annotated[int, option("GPUs of the simulated node", metavar="N")] = 8
    simulate_speed: Annotated[float, option("how many times faster the simulated training runs", metavar="X")] = 1.0
    simulate_seed: Annotated[int, option("the same seed gives the same simulation", metavar="N")] = 1
    log_level: Annotated[
        LogLevel, option("how much the agent says: debug, info, warning or error", metavar="LEVEL")
    ] = "info"


def credentials(settings: AgentSettings) -> Credentials:
    """By what this agent and its server know each other."""
    return Credentials(settings.token, settings.tls_ca, settings.tls_cert, settings.tls_key)


def permit(settings: AgentSettings) -> Permit:
    """What the settings allow a server to have done on this node."""
    folder = AUTO_FOLDER.format(uid=os.geteuid()) if settings.acts_dir == "auto" else settings.acts_dir
    return Permit(
        acts=settings.allow_acts, folder=Path(folder), hook=settings.hook, hook_seconds=float(settings.hook_limit)
    )


class Invocation(NamedTuple):
    """What the command line asked for."""

    settings: AgentSettings
    resolved: Resolved[AgentSettings]
    check: bool


def load(argv: Sequence[str] | None, environ: Mapping[str, str]) -> Invocation:
    """The settings in force, completed and checked. Raises SettingError; ends the program for --help and --version."""
    return settled(command_line().parse_args(argv), environ)


def settled(namespace: argparse.Namespace, environ: Mapping[str, str]) -> Invocation:
    """The same, of a command line that was taken apart already."""
    resolved = resolve(AgentSettings, namespace, environ)
    settings = _completed(resolved)
    _check(settings, resolved.origins)
    return Invocation(settings, Resolved(settings, resolved.origins), bool(namespace.check))


def command_line() -> argparse.ArgumentParser:
    """The agent's flags."""
    parser = argparse.ArgumentParser(
        prog="oomwatch-agent",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"oomwatch-agent {__version__}")
    parser.add_argument(
        "--check", action="store_true", help="say what is found and whether the server answers, then stop"
    )
    add_options(parser, AgentSettings)
    return parser


_LABEL_CHARS = 64  # of one part of a host's name: fewer


def server_url(text: str) -> str:
    """The WebSocket address behind HOST, HOST:PORT, http://... or ws://...; a ValueError says what would be right."""
    address = text.strip()
    parts = urlsplit(address if "://" in address else f"ws://{address}")
    try:
        port = parts.port
    except ValueError:
        raise ValueError(f'"{text}" has no usable port; write for example {DEFAULT_SERVER}') from None
    if not _can_be_looked_up(parts.hostname or ""):
        raise ValueError(f'"{text}" has no usable host name; write for example {DEFAULT_SERVER}')
    if parts.scheme not in _SCHEMES or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(f'"{text}" is no server address; write for example {DEFAULT_SERVER} or HOST:PORT')
    scheme = _SCHEMES[parts.scheme]
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    # Behind TLS stands a proxy, which listens on the port of its scheme.
    where = host if port is None and scheme == "wss" else f"{host}:{_DEFAULT_PORT if port is None else port}"
    path = parts.path.rstrip("/")
    return f"{scheme}://{where}{path if path.endswith(AGENT_PATH) else path + AGENT_PATH}"


def _can_be_looked_up(host: str) -> bool:
    """Whether Python's look-up takes the name. Its own codec says so, at half a MiB of tables that plain names do not
    need: of those it wants no part to be empty or longer than 63."""
    if host.isascii():
        *parts, last = host.split(".")
        return all(0 < len(part) < _LABEL_CHARS for part in parts) and len(last) < _LABEL_CHARS
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def _completed(resolved: Resolved[AgentSettings]) -> AgentSettings:
    """With every "auto" that needs no source replaced by what it stands for."""
    settings = resolved.settings
    try:
        server = server_url(settings.server)
    except ValueError as error:
        raise SettingError(f"{resolved.origins['server']}: {error}") from error
    node = socket.gethostname() if settings.node == "auto" else settings.node
    return msgspec.structs.replace(settings, server=server, node=node)


def _check(settings: AgentSettings, origins: Mapping[str, str]) -> None:
    for name, sentence in _mistakes(settings):
        raise SettingError(f"{origins[name]}: {sentence}")


def _mistakes(settings: AgentSettings) -> list[tuple[str, str]]:
    """Setting and sentence of everything that cannot be used."""
    shortest, longest = _INTERVAL_BOUNDS_SECONDS
    token_can_be_sent = settings.token is None or (settings.token.isascii() and settings.token.isprintable())
    checks = [
        ("interval", shortest <= settings.interval <= longest, f"the interval must be {shortest:g}s to {longest:g}s"),
        ("cpu_budget", 0 <= settings.cpu_budget <= _CPU_BUDGET_MAX, f"must be 0 to {_CPU_BUDGET_MAX:g}"),
        ("fastest", settings.fastest >= _FASTEST_SECONDS, f"must be {_FASTEST_SECONDS:g}s or more"),
        (
            "node",
            0 < len(settings.node) <= wire.NAME_CHARS_MAX,
            f"a node name has 1 to {wire.NAME_CHARS_MAX} characters",
        ),
        (
            "run",
            settings.run is None or 0 < len(settings.run) <= wire.NAME_CHARS_MAX,
            f"a run name has 1 to {wire.NAME_CHARS_MAX} characters",
        ),
        (
            "server",
            settings.server.startswith("wss:") or not (settings.tls_ca or settings.tls_cert),
            "has no TLS, and tls_ca and tls_cert are of no use; write https://HOST:PORT",
        ),
        ("token", token_can_be_sent, "a token consists of printable ASCII characters without line breaks"),
        (
            "simulate",
            settings.simulate in ("auto", "off", *SCENARIOS),
            f'there is no scenario "{settings.simulate}"; known are {", ".join(SCENARIOS)}, and auto and off',
        ),
        ("simulate_gpus", 1 <= settings.simulate_gpus <= _MAX_SIMULATED_GPUS, f"must be 1 to {_MAX_SIMULATED_GPUS}"),
        ("simulate_speed", 0.01 <= settings.simulate_speed <= 1000, "must be 0.01 to 1000"),  # noqa: PLR2004
        ("log", settings.log.count("-") <= 1, "standard input can be followed once only"),
        ("patterns", mistake_in(settings.patterns) is None, mistake_in(settings.patterns) or ""),
        ("allow_acts", "hook" not in settings.allow_acts or settings.hook is not None, "hook needs --hook PATH"),
        ("hook", settings.hook is None or _can_be_run(settings.hook), f"{settings.hook} {_NO_HOOK}"),
        ("hook_limit", _HOOK_BOUNDS_SECONDS[0] <= settings.hook_limit <= _HOOK_BOUNDS_SECONDS[1], "must be 1s to 1h"),
        ("acts_dir", settings.acts_dir == "auto" or Path(settings.acts_dir).is_absolute(), "must be an absolute path"),
        *[("engine_metrics", False, mistake) for mistake in _engine_mistakes(settings.engine_metrics)],
    ]
    return [(name, sentence) for name, fits, sentence in checks if not fits]


_NO_HOOK = "is no absolute path of a file that can be executed"


def _can_be_run(path: Path) -> bool:
    return path.is_absolute() and path.is_file() and os.access(path, os.X_OK)


def _engine_mistakes(wanted: Sequence[str]) -> Iterator[str]:
    if "off" in wanted and len(wanted) > 1:
        yield '"off" stands alone'
    yield from (mistake for text in wanted if (mistake := _address_mistake(text)) is not None)


def _address_mistake(text: str) -> str | None:
    try:
        if text not in ("auto", "off"):
            endpoint(text)
    except ValueError as error:
        return str(error)
    return None
