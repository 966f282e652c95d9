"""`oomwatch ray start|status|stop`: agents on every node of a running Ray cluster."""

import argparse
import contextlib
import json
import logging
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from oomwatch.commands.tables import aligned
from oomwatch.options import SettingError, read_secret
from oomwatch.units import counted, parse_duration

FAILED = 1
Untyped: TypeAlias = Any  # of Ray, which has no types of its own, and of what is loaded with it

ANSWER_SECONDS = 20.0
STOP_SECONDS = 30.0
COLUMNS = ("NODE", "RAY NODE", "ADDRESS", "AGENT", "STARTS", "LAST WORDS")
NO_RAY = 'Ray is not installed here: run this where the cluster\'s own Python is, or "pip install ray" in its version'
ASK_RAY = 'what does Ray\'s own "ray status" say?'
NONE_KEPT = 'no agents are kept in this cluster; "oomwatch ray start" starts them'
KEPT = 'agents are kept in this cluster already; "oomwatch ray status" shows them, "oomwatch ray stop" ends them'


def run_start(options: argparse.Namespace) -> int:
    """Start agents, and wait for them. Gives the exit status."""
    token = None if options.token_file is None else read_secret(options.token_file, "flag --token-file")
    arguments = _arguments(options)
    wait_seconds = _seconds(options.wait)
    within = _within()
    plan = within.Plan(arguments, None if token is None else within.Hidden(token), options.name_by)
    with _connected(options.address) as ray:
        if _overseer(ray) is not None:
            print(f"oomwatch: {KEPT}", file=sys.stderr)
            return FAILED
        seen = within.look_at([node["NodeID"] for node in _alive(ray)], ANSWER_SECONDS)
    # What Ray has to bring is said when one connects.
    with (
        tempfile.TemporaryDirectory(prefix="oomwatch-") as folder,
        _connected(options.address, _code(options.code, seen, Path(folder))) as ray,
    ):
        within.start_overseer(plan)
        rows = _waited(ray, wait_seconds)
    print("\n".join(_told(rows)))
    return 0 if _all_run(rows) else FAILED


def run_status(options: argparse.Namespace) -> int:
    """Tell of each node. Gives the exit status."""
    with _connected(options.address) as ray:
        if _overseer(ray) is None:
            print(f"oomwatch: {NONE_KEPT}", file=sys.stderr)
            return FAILED
        rows = _rows(ray)
    print(json.dumps(rows, indent=1) if options.json else "\n".join(_told(rows)))
    return 0 if _all_run(rows) else FAILED


def run_stop(options: argparse.Namespace) -> int:
    """End all. Gives the exit status."""
    with _connected(options.address) as ray:
        overseer = _overseer(ray)
        if overseer is None:
            print(f"oomwatch: {NONE_KEPT}", file=sys.stderr)
            return FAILED
        nodes = len(ray.get(overseer.nodes.remote(), timeout=ANSWER_SECONDS))
        ended = ray.get(overseer.stop.remote(STOP_SECONDS), timeout=2 * STOP_SECONDS)
        ray.kill(overseer)
    print(f"{ended} of {counted(nodes, 'agent')} said goodbye; none is kept any more")
    return 0


def _within() -> Untyped:
    """The module that runs on the nodes, to be sent there by value: they need not have it."""
    try:
        import ray  # noqa: PLC0415 - optional

        from oomwatch.commands.ray import within  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise SettingError(NO_RAY) from error
    by_value: Untyped = ray.cloudpickle.register_pickle_by_value
    by_value(within)
    return within


@contextlib.contextmanager
def _connected(address: str, env: Mapping[str, Any] | None = None) -> Iterator[Untyped]:
    """Ray, connected to a cluster that runs. Raises SettingError where there is none, or it stops to answer."""
    within = _within()
    import ray  # noqa: PLC0415 - optional

    # Ray's own threads print what happens in the cluster: that is no part of what we print.
    with contextlib.redirect_stdout(sys.stderr):
        _init(ray, address, within.NAMESPACE, env)
        try:
            yield ray
        except ray.exceptions.RayError as error:
            raise SettingError(f"--address {address}: {_first_line(error)}; {ASK_RAY}") from error
        finally:
            ray.shutdown()


def _init(ray: Untyped, address: str, namespace: str, env: Mapping[str, Any] | None) -> None:
    try:
        ray.init(
            address=address,
            namespace=namespace,
            runtime_env=dict(env) if env else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise SettingError(f"--address {address}: no Ray cluster answers there: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


def _code(wanted: str, seen: Mapping[str, Untyped], folder: Path) -> dict[str, Any] | None:
    """What Ray has to bring to the nodes; None where all is there."""
    from oomwatch.commands.ray import code  # noqa: PLC0415 - needs Ray

    return code.runtime_env(seen, folder) if code.is_needed(wanted, seen.values()) else None


def _alive(ray: Untyped) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _overseer(ray: Untyped) -> Untyped:
    within = _within()
    try:
        return ray.get_actor(within.OVERSEER, namespace=within.NAMESPACE)
    except ValueError:
        return None


def _waited(ray: Untyped, seconds: float) -> list[dict[str, Any]]:
    """Once every node has an agent, or the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        rows = _rows(ray)
        if _all_run(rows) or time.monotonic() > deadline:
            return rows
        time.sleep(0.5)


def _rows(ray: Untyped) -> list[dict[str, Any]]:
    """A row a node: what Ray and its keeper say of it."""
    said = ray.get(_overseer(ray).status.remote(ANSWER_SECONDS), timeout=2 * ANSWER_SECONDS)
    nothing: dict[str, Any] = {"name": None, "pid": None, "starts": 0, "lines": []}
    return [
        {"ray_node": node["NodeID"], "address": node["NodeManagerAddress"], **nothing, **said.get(node["NodeID"], {})}
        for node in _alive(ray)
    ]


def _all_run(rows: list[dict[str, Any]]) -> bool:
    return bool(rows) and all(row["pid"] is not None for row in rows)


def _told(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The lines for a terminal."""
    yield from aligned([COLUMNS, *[_cells(row) for row in rows]])


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    runs = row["pid"] is not None
    words = "" if runs else (row["lines"] or ["nothing yet"])[-1]
    agent = f"runs, pid {row['pid']}" if runs else "does not run"
    return (row["name"] or "?", row["ray_node"][:8], row["address"], agent, str(row["starts"]), words)


def _arguments(options: argparse.Namespace) -> tuple[str, ...]:
    """What each agent is started with. Raises SettingError where that would show a token to everybody on the node."""
    if any(word == "--token" or word.startswith("--token=") for word in options.words):
        raise SettingError(
            "--token would stand on every agent's command line; name a file with --token-file, before the --"
        )
    from oomwatch_agent.settings import load  # noqa: PLC0415

    arguments = ("--server", options.server, *options.words)
    load(arguments, {})
    return arguments


def _seconds(text: str) -> float:
    try:
        return float(parse_duration(text))
    except ValueError as error:
        raise SettingError(f"flag --wait: {error}") from error
