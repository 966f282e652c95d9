"""Who this process is, by what it can say of itself without asking anybody."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import oomwatch_probe
from oomwatch_probe.asked import ask_name

REFRESH_SECONDS = 30.0  # a Ray worker's title changes with what it does
_MAX_TEXT = 200
_TITLE_BYTES = 4096

# The roles, and words in the titles of Ray's, verl's, vLLM's and SGLang's processes that tell them. The first of these
# that a process was ever seen to be is its role: one that trains the actor may compute the critic's values in between.
ROLES = (
    (
        "actor",
        ("actor_rollout_update_actor", "actorrolloutref", "actor_update", "ray::actorworker", "workerdict.actor"),
    ),
    ("rollout", ("vllm", "sglang", "enginecore", "rolloutworker", "httpserver")),
    ("critic", ("critic",)),
    ("reward", ("reward",)),
    ("ref", ("refworker", "refpolicy", "workerdict.ref")),
    ("driver", ("taskrunner", "main_ppo")),
)


class Identity:
    """Made anew in each process; looks again now and then."""

    def __init__(self) -> None:
        self._started_at = time.time()
        self.ask_name = ask_name(os.getpid(), self._started_at)
        self._looked_at: float | None = None
        self._known: dict[str, Any] = {}
        self._role: str | None = None

    def now(self, errors: int) -> dict[str, Any]:
        """The fields of the message that say who sends it. What is not known is left out."""
        now = time.monotonic()
        if self._looked_at is None or now - self._looked_at >= REFRESH_SECONDS:
            self._looked_at = now
            self._known = {name: value for name, value in self._look().items() if value is not None}
        return dict(self._known, errors=errors)

    def _look(self) -> dict[str, Any]:
        self._role = _better(self._role, role_of(title() + " " + _multiprocessing_name()))
        return {
            "v": 1,
            "pid": os.getpid(),
            "started_at": self._started_at,
            "door": oomwatch_probe.door(),
            "role": self._role,
            "run": _text(os.environ.get("OOMWATCH_RUN")),
            "rank": _number("RANK"),
            "local_rank": _number("LOCAL_RANK", "RAY_LOCAL_RANK"),
            "world_size": _number("WORLD_SIZE"),
            "visible_devices": _text(os.environ.get("CUDA_VISIBLE_DEVICES")),
            "torch_version": _text(getattr(sys.modules.get("torch"), "__version__", None)),
        }


def role_of(words: str) -> str | None:
    """The role that a process' title tells, None where it tells none."""
    lower = words.lower()
    for role, signs in ROLES:
        if any(sign in lower for sign in signs):
            return role
    return None


def title() -> str:
    """The title of this process, without the arguments of a program that gave itself none: they may be anything."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read(_TITLE_BYTES).split(b"\0")
    except OSError:
        return ""
    if b"::" in words[0]:
        return words[0].decode("utf-8", "replace")
    # "python -m verl.trainer.main_ppo data.x=y": the module tells, its arguments would mislead.
    return b" ".join(words[1:3] if words[1:2] == [b"-m"] else words[1:2]).decode("utf-8", "replace")


def _multiprocessing_name() -> str:
    """vLLM names its processes ("EngineCore_DP0") even where they cannot set a title."""
    process = sys.modules.get("multiprocessing.process")
    return str(process.current_process().name) if process is not None else ""


def _better(role: str | None, other: str | None) -> str | None:
    names = [name for name, _ in ROLES]
    return min((name for name in (role, other) if name is not None), key=names.index, default=None)


def _number(*names: str) -> int | None:
    for name in names:
        text = os.environ.get(name, "")
        if text.isascii() and text.isdigit():
            return int(text)
    return None


def _text(value: object) -> str | None:
    """Printable and short, or nothing."""
    text = "".join(letter for letter in str(value or "")[:_MAX_TEXT] if letter.isprintable())
    return text or None
