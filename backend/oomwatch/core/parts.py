"""Which kinds of process hold the memory of a GPU or of a host, and which kind grows.

A process that trains swings with every step, so kinds are compared by their floors: the least that a kind held in each
minute, the first third of a time against the last. Where steps are known, core/likemoments.py compares better.
"""

import re
from array import array
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import lru_cache
from math import floor
from typing import NamedTuple

from oomwatch import wire

BLOCK_SECONDS = 60.0
BLOCKS_KEPT = 40
LOADING_BLOCKS = 5  # programs load, and optimizers make their states
RECENT_BLOCKS = 4  # what grows fast is seen in the last ones alone
BLOCKS_MIN = 4  # before that, nothing is called growth
UNDER_WAY = 0.1  # of a rise: so much of it comes before, and so much after the middle third
NAMES_KNOWN = 512  # each name comes again every ten seconds
OURS = ("engine", "trainer")  # on a GPU: they load when the run starts, which is no growth
COMERS = ("stranger",)  # whatever they bring is new

# What programs call themselves: Ray titles its workers ray::CLASS, vLLM and SGLang theirs VLLM::PART and sglang::PART.
# The page knows them by the same words (process-kinds.js): tests/core/process_kinds.json holds both to each of them.
_DRIVER = re.compile(r"TaskRunner|main_task|main_ppo")
_ENGINE = re.compile(r"vllm|EngineCore|sglang|AsyncLLM", re.IGNORECASE)
_WORKER = re.compile(r"WorkerDict|ActorRollout|CriticWorker|RewardModelWorker|TrainingWorker|ray::\w*Worker")
_STORE = re.compile(r"raylet|plasma")
NAMES = (("driver", _DRIVER), ("engine", _ENGINE), ("worker", _WORKER), ("object_store", _STORE))
KINDS_ON_HOST = (*(kind for kind, _ in NAMES), "other")


@lru_cache(NAMES_KNOWN)
def kind_of_name(name: str) -> str:
    """ "driver", "engine", "worker", "object_store" or "other", by what a process of the host calls itself."""
    return next((kind for kind, pattern in NAMES if pattern.search(name)), "other")


def kind_on_gpu(process: wire.GpuProcess, run: str | None) -> str:
    """ "engine", "trainer", "stranger" (of another run) or "unknown" (of which nothing ties it to this run)."""
    name = process.name or ""
    if process.run is not None and run is not None and process.run != run:
        return "stranger"
    by_name = _kind_on_gpu_by_name(name)
    if process.role == "rollout" or by_name == "engine":
        return "engine"
    return by_name if process.run is None and process.role is None else "trainer"


@lru_cache(NAMES_KNOWN)
def _kind_on_gpu_by_name(name: str) -> str:
    if _ENGINE.search(name):
        return "engine"
    return "trainer" if _WORKER.search(name) or _DRIVER.search(name) else "unknown"


class Part(NamedTuple):
    """What one kind of process holds now, and how much its floor rose while it was watched."""

    kind: str
    used_bytes: float
    rise_bytes: float
    largest: str = ""  # name of the largest process of this kind
    rise_seconds: float = 0.0  # how long the rise took


class Parts:
    """The latest size of each kind, and its floor minute by minute."""

    def __init__(self) -> None:
        self._floors: dict[str, array[float]] = {}
        self._now: dict[str, float] = {}
        self._largest: dict[str, tuple[float, str]] = {}
        self._block: float | None = None

    def observe(self, at: float, sizes: Iterable[tuple[str, float, str]]) -> None:
        """Take (kind, bytes, name) of all processes in. A kind that is not among them holds nothing."""
        told = list(sizes)
        now = dict.fromkeys(self._now, 0.0) | sums(told)
        largest: dict[str, tuple[float, str]] = {}
        for kind, size, name in told:
            largest[kind] = max(largest.get(kind, (0.0, "")), (size, name))
        block = floor(at / BLOCK_SECONDS)
        is_new = block != self._block
        watched = max((len(floors) for floors in self._floors.values()), default=0)
        for kind, size in now.items():
            self._add(kind, size, is_new=is_new, before=watched if is_new else max(0, watched - 1))
        self._block, self._now, self._largest = block, now, largest

    def _add(self, kind: str, size: float, *, is_new: bool, before: int) -> None:
        if kind not in self._floors:  # it held nothing in the blocks before
            self._floors[kind] = array("d", ([0.0] * before + [size])[-BLOCKS_KEPT:])
        elif is_new:
            self._floors[kind].append(size)
            del self._floors[kind][:-BLOCKS_KEPT]
        else:
            self._floors[kind][-1] = min(self._floors[kind][-1], size)

    def __iter__(self) -> Iterator[Part]:
        """Every kind that is here, the largest first."""
        here = sorted(self._now.items(), key=lambda item: -item[1])
        return (self._part(kind, size) for kind, size in here if size > 0)

    def _part(self, kind: str, size: float) -> Part:
        rise, blocks = self._rise(kind)
        return Part(kind, size, rise, self._largest[kind][1], blocks * BLOCK_SECONDS)

    def _rise(self, kind: str) -> tuple[float, int]:
        """The largest rise, and over how many blocks: of what is here since it was last gone."""
        floors = list(self._floors[kind])
        came = next((index + 1 for index in reversed(range(len(floors))) if not floors[index]), 0)
        if kind in COMERS and came >= BLOCKS_MIN:  # later than the others
            return min(floors[came + 1 :], default=self._now[kind]), len(floors) - came
        loaded = came + (0 if came == 0 and len(floors) == BLOCKS_KEPT else LOADING_BLOCKS)
        return _rise_of(floors[loaded:])


def _rise_of(floors: list[float]) -> tuple[float, int]:
    """From the first third to the last. A swing that is longer than a third has but two levels: growth has a middle."""
    found = [(0.0, 0)]
    for size in dict.fromkeys((len(floors) // 3, min(RECENT_BLOCKS, len(floors) // 3))):
        if len(floors) >= BLOCKS_MIN:
            first, middle, last = (min(floors[len(floors) - place * size :][:size]) for place in (3, 2, 1))
            least = UNDER_WAY * (last - first)
            goes_on = last > first and middle - first >= least and last - middle >= least
            found.append((last - first if goes_on else 0.0, 2 * size))
    return max(found)


def kinds_on_gpu(
    processes: Iterable[wire.GpuProcess], run: str | None, strangers: Container[int] = ()
) -> list[tuple[wire.GpuProcess, str]]:
    """Each with its kind. Where none is the run's, none is a stranger but those (by pid) that were known as such."""
    told = [(one, kind_on_gpu(one, run)) for one in processes]
    ours = any(kind in OURS for one, kind in told if one.used_bytes)
    return [(one, "stranger" if kind == "unknown" and (ours or one.pid in strangers) else kind) for one, kind in told]


def of_gpu(told: Iterable[tuple[wire.GpuProcess, str]]) -> list[tuple[str, float, str]]:
    """What Parts.observe takes, of a GPU's process table."""
    return [(kind, float(one.used_bytes), one.name or "") for one, kind in told if one.used_bytes]


def of_host(processes: Iterable[wire.HostProcess], shm_used_bytes: int | None) -> list[tuple[str, float, str]]:
    """What Parts.observe takes, of a host's largest processes, and of /dev/shm, where Ray's store lies."""
    sized = [(kind_of_name(one.name), float(one.rss_bytes), one.name) for one in processes]
    return [*sized, ("object_store", float(shm_used_bytes or 0), "/dev/shm")]  # noqa: S108 - only its name


def sums(sizes: Iterable[tuple[str, float, str]]) -> dict[str, float]:
    """Bytes by kind."""
    found: dict[str, float] = {}
    for kind, size, _ in sizes:
        found[kind] = found.get(kind, 0.0) + size
    return found


def named(parts: Iterable[Part]) -> Mapping[str, Part]:
    return {part.kind: part for part in parts}
