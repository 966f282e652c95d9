"""The configuration of a live run, as a server knows it: for --server URL --run NAME."""

import argparse
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.commands.client import Client, ServerError, client_of
from oomwatch.doctor.read import Source
from oomwatch.options import SettingError


class Told(NamedTuple):
    source: Source
    card: str | None  # NVML's name of the run's cards; None where they are not known, or of several kinds


def configuration_of(options: argparse.Namespace) -> Told:
    """Ask for a run's configuration, and for its cards. Raises SettingError, and ServerError."""
    client = client_of(options)
    if client is None:
        raise SettingError("flag --run: say with --server URL (or OOMWATCH_SERVER) which server knows the run")
    run = _run(client, options.run)
    if not run.config:
        raise ServerError(
            f'{client.server} knows no configuration of run "{run.run}": its agent finds one in the log that verl '
            "prints at start, and in the .hydra folder beside it"
        )
    settings = msgspec.json.format(msgspec.json.encode(run.config), indent=1)
    return Told(Source(f"run {run.run}", settings), _card(client, run))


def _run(client: Client, name: str) -> wire.Run:
    runs = client.get("/api/v1/runs", list[wire.Run])
    found = next((run for run in runs if run.run == name), None)
    if found is None:
        known = ", ".join(run.run for run in runs) or "none"
        raise ServerError(f'{client.server} knows no run "{name}"; it knows {known}')
    return found


def _card(client: Client, run: wire.Run) -> str | None:
    """The name of the cards that the run is on."""
    nodes = client.get("/api/v1/nodes", list[wire.Node])
    names = {
        facts.name
        for node in nodes
        if node.node in run.nodes
        for facts, of in zip(node.facts.gpus, node.gpu_runs or [node.run] * len(node.facts.gpus), strict=False)
        if of == run.run
    }
    return names.pop() if len(names) == 1 else None
