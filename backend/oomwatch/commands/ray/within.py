"""What runs inside a Ray cluster: a keeper on each node, which keeps an agent running, and an overseer of the keepers.

It is sent to the nodes by value, so that they need nothing of ours to load it: it imports the standard library and ray.
"""

import collections
import contextlib
import importlib
import importlib.util
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

NAMESPACE, OVERSEER = "oomwatch", "overseer"
LOOK_SECONDS = 5.0  # between two looks for nodes that have joined
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
STEADY_SECONDS = 60.0  # an agent that ran for so long is started again at once
GOODBYE_SECONDS = 8.0
LINES_KEPT = 40
Untyped: TypeAlias = Any  # of Ray, which has no types of its own
NEEDED = {
    "msgspec": "msgspec",
    "nvidia-ml-py": "pynvml",
    "pyyaml": "yaml",
    "websockets": "websockets",
}

# The kernel ends the agent should its keeper be killed: another one could not have its name (PR_SET_PDEATHSIG is 1).
BOOT = """\
import ctypes, os, runpy, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)
if os.getppid() != int(sys.argv.pop(1)): sys.exit(1)
sys.argv[0] = "oomwatch-agent"
runpy.run_module("oomwatch_agent", run_name="__main__", alter_sys=True)
"""


class Hidden:
    """A secret, which no log and no error shows."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "(secret)"


class Plan(NamedTuple):
    """What every agent is told. `named_by`: "host" or "id"."""

    arguments: tuple[str, ...]
    token: Hidden | None
    named_by: str


class Seen(NamedTuple):
    """What a node has. `missing`: distributions that an agent needs, by the names that pip knows."""

    oomwatch: str | None
    missing: tuple[str, ...]


def seen_here() -> Seen:
    """Of the node that this runs on."""
    version = None
    if importlib.util.find_spec("oomwatch_agent") is not None:
        version = str(importlib.import_module("oomwatch").__version__)
    missing = [name for name, module in NEEDED.items() if importlib.util.find_spec(module) is None]
    return Seen(version, tuple(missing))


class Keeper:
    """An actor: runs an agent on its node, and starts it again when it ends."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lines: collections.deque[str] = collections.deque(maxlen=LINES_KEPT)
        self._starts = 0
        self._agent: subprocess.Popen[str] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="oomwatch keeper", daemon=True)
        self._thread.start()

    def status(self) -> dict[str, Any]:
        """What is known of the agent, as plain values."""
        agent = self._agent
        return {
            "name": self._name(),
            "pid": agent.pid if agent is not None and agent.poll() is None else None,
            "starts": self._starts,
            "lines": list(self._lines),
        }

    def stop(self) -> bool:
        """Have the agent say goodbye, and start no other. Whether it ended in time."""
        self._stopping.set()
        agent = self._agent
        if agent is not None:
            agent.terminate()
        self._thread.join(GOODBYE_SECONDS)
        return not self._thread.is_alive()

    def _keep(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                self._run_once()
            except OSError as error:
                self._lines.append(f"the agent cannot be started: {sys.executable}: {error.strerror or error}")
            ran_long = time.monotonic() - began >= STEADY_SECONDS
            pause = FIRST_PAUSE_SECONDS if ran_long else min(LONGEST_PAUSE_SECONDS, 2 * pause)
            self._stopping.wait(pause)

    def _run_once(self) -> None:
        """Until the agent ends. Its lines are kept here, and not in Ray's logs: the agent itself reads those."""
        with self._started() as agent:
            self._agent = agent
            self._starts += 1
            if self._stopping.is_set():
                agent.terminate()
            for line in agent.stdout or ():
                self._lines.append(line.rstrip()[:500])
            self._lines.append(f"the agent ended with status {agent.wait()}")

    def _started(self) -> "subprocess.Popen[str]":
        with self._token_flags() as (flags, pipes):
            command = [sys.executable, "-c", BOOT, str(os.getpid()), *self._plan.arguments, "--node", self._name()]
            return subprocess.Popen(  # noqa: S603 - our own program
                [*command, *flags],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                pass_fds=pipes,
            )

    @contextlib.contextmanager
    def _token_flags(self) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
        """Flags by which the agent reads its token from a pipe, and the pipe's end to hand over."""
        if self._plan.token is None:
            yield (), ()
            return
        reading, writing = os.pipe()
        with os.fdopen(writing, "w") as into:
            into.write(self._plan.token.text)
        try:
            yield ("--token-file", f"/dev/fd/{reading}"), (reading,)
        finally:
            os.close(reading)

    def _name(self) -> str:
        host = socket.gethostname()
        return f"{host}-{ray.get_runtime_context().get_node_id()[:8]}" if self._plan.named_by == "id" else host


class Overseer:
    """An actor: sees to it that each node that lives has a keeper."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._keepers: dict[str, Untyped] = {}
        self._stopping = threading.Event()
        self._changing = threading.Lock()
        threading.Thread(target=self._watch, name="oomwatch overseer", daemon=True).start()

    def nodes(self) -> list[str]:
        """Ids of the nodes that have a keeper."""
        return sorted(self._keepers)

    def status(self, within_seconds: float) -> dict[str, dict[str, Any]]:
        """By node id, what its keeper says; {} of one that does not answer."""
        asked = {node: keeper.status.remote() for node, keeper in dict(self._keepers).items()}
        deadline = time.monotonic() + within_seconds
        return {node: _answer(said, deadline) or {} for node, said in asked.items()}

    def stop(self, within_seconds: float) -> int:
        """End all agents, then all keepers. How many said goodbye."""
        self._stopping.set()
        with self._changing:
            asked = {node: keeper.stop.remote() for node, keeper in self._keepers.items()}
            deadline = time.monotonic() + within_seconds
            ended = sum(bool(_answer(said, deadline)) for said in asked.values())
            for keeper in self._keepers.values():
                ray.kill(keeper)
            self._keepers.clear()
        return ended

    def _watch(self) -> None:
        while not self._stopping.is_set():
            with self._changing:
                if not self._stopping.is_set():
                    self._look()
            self._stopping.wait(LOOK_SECONDS)

    def _look(self) -> None:
        told: Untyped = ray.nodes
        alive = [node["NodeID"] for node in told() if node["Alive"]]
        for gone in self._keepers.keys() - set(alive):
            ray.kill(self._keepers.pop(gone))
        for node in alive:
            if node not in self._keepers:
                self._keepers[node] = _pinned(Keeper, node, f"agent-{node}").remote(self._plan)


def _answer(said: Untyped, deadline: float) -> Untyped:
    try:
        return ray.get(said, timeout=max(0.1, deadline - time.monotonic()))
    except (ray.exceptions.RayError, TimeoutError):
        return None


def _pinned(actor: type, node: str, name: str) -> Untyped:
    """An actor that lives on this node, takes nothing of it, and is made anew there when it dies."""
    return ray.remote(actor).options(
        name=name,
        namespace=NAMESPACE,
        lifetime="detached",
        get_if_exists=True,
        num_cpus=0,
        max_restarts=-1,
        max_concurrency=4,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node, soft=False),
    )


def start_overseer(plan: Plan) -> Untyped:
    """On whichever node; it is made anew elsewhere when that is gone."""
    actor = ray.remote(Overseer).options(
        name=OVERSEER, namespace=NAMESPACE, lifetime="detached", num_cpus=0, max_restarts=-1, max_concurrency=4
    )
    return actor.remote(plan)


def look_at(nodes: Sequence[str], within_seconds: float) -> dict[str, Seen | None]:
    """What each node has; None of one that did not answer."""
    task = ray.remote(seen_here)
    asked = {
        node: task.options(num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
        for node in nodes
    }
    deadline = time.monotonic() + within_seconds
    return {node: _answer(said, deadline) for node, said in asked.items()}
