"""What is to be checked: which programs are to run here, and by which settings."""

import argparse
import importlib.util
from collections.abc import Mapping
from typing import NamedTuple

from oomwatch.options import SettingError, resolve
from oomwatch.settings import Settings, check
from oomwatch_agent.settings import AgentSettings, load


class Asked(NamedTuple):
    """Settings are None where they cannot be used (the mistake says why) or the program is not to run here."""

    environ: Mapping[str, str]
    server: Settings | None
    agent: AgentSettings | None
    mistakes: tuple[tuple[str, str], ...] = ()  # "server" or "agent", and a sentence


def asked(options: argparse.Namespace, environ: Mapping[str, str]) -> Asked:
    """From the command line. `--role auto`: an agent, and a server where what it needs is installed."""
    mistakes: list[tuple[str, str]] = []
    server, agent = None, None
    if options.role in ("server", "both") or (options.role == "auto" and _can_serve()):
        try:
            server = resolve(Settings, argparse.Namespace(config=options.config), _of_server(environ)).settings
            check(server)
        except SettingError as error:
            server = None
            mistakes.append(("server", str(error)))
    if options.role != "server":
        try:
            agent = load(_agent_flags(options), environ).settings
        except SettingError as error:
            mistakes.append(("agent", str(error)))
    return Asked(environ, server, agent, tuple(mistakes))


def _can_serve() -> bool:
    return importlib.util.find_spec("fastapi") is not None


def _of_server(environ: Mapping[str, str]) -> dict[str, str]:
    """OOMWATCH_CONFIG of an agent's unit is no server's file; which is meant is said by --config."""
    return {name: value for name, value in environ.items() if name != "OOMWATCH_CONFIG"}


def _agent_flags(options: argparse.Namespace) -> list[str]:
    named = (("--config", options.agent_config), ("--server", options.server), ("--token-file", options.token_file))
    return [part for flag, value in named if value is not None for part in (flag, str(value))]
