"""What is to be checked: which programs are to run here, and by which settings."""

import argparse
import importlib.util
from collections.abc import Mapping
from typing import Literal, NamedTuple

from oomwatch.options import ENVIRONMENT_PREFIX, SettingError, resolve
from oomwatch.settings import Settings, check
from oomwatch_agent.settings import AgentSettings, load

CONFIG = ENVIRONMENT_PREFIX + "CONFIG"
Role = Literal["server", "agent"]


class Asked(NamedTuple):
    """Settings are None where they cannot be used (the mistake says why) or the program is not to run here."""

    environ: Mapping[str, str]
    roles: tuple[Role, ...]
    server: Settings | None
    agent: AgentSettings | None
    mistakes: tuple[tuple[Role, str], ...] = ()  # whose, and a sentence


def asked(options: argparse.Namespace, environ: Mapping[str, str]) -> Asked:
    """From the command line. Raises SettingError where it is not said whose file OOMWATCH_CONFIG is."""
    roles = _roles(options.role or "auto")
    _demand_one_owner(options, roles, environ)
    mistakes: list[tuple[Role, str]] = []
    server, agent = None, None
    if "server" in roles:
        try:
            server = resolve(Settings, argparse.Namespace(config=options.config), environ).settings
            check(server)
        except SettingError as error:
            server = None
            mistakes.append(("server", str(error)))
    if "agent" in roles:
        try:
            agent = load(_agent_flags(options), environ).settings
        except SettingError as error:
            mistakes.append(("agent", str(error)))
    return Asked(environ, roles, server, agent, tuple(mistakes))


def _roles(wanted: str) -> tuple[Role, ...]:
    """`auto`: an agent, and a server where what it needs is installed."""
    if wanted == "server":
        return ("server",)
    if wanted == "both" or (wanted == "auto" and importlib.util.find_spec("fastapi") is not None):
        return ("server", "agent")
    return ("agent",)


def _demand_one_owner(options: argparse.Namespace, roles: tuple[Role, ...], environ: Mapping[str, str]) -> None:
    """Each of the two programs reads that variable, and one file cannot hold the settings of both."""
    if len(roles) > 1 and environ.get(CONFIG) and not (options.config or options.agent_config):
        raise SettingError(
            f"environment {CONFIG}: is {environ[CONFIG]} the server's or the agent's? Name the other's file with "
            "--config (the server's) or --agent-config, or look at one alone with --role server or --role agent"
        )


def _agent_flags(options: argparse.Namespace) -> list[str]:
    named = (("--config", options.agent_config), ("--server", options.server), ("--token-file", options.token_file))
    return [part for flag, value in named if value is not None for part in (flag, str(value))]
