"""The host's memory, Ray's object store and the disk that it spills to, from step to step."""

from typing import NamedTuple

from bench.warnings.memory import Resident
from bench.warnings.nature import Nature
from bench.warnings.settings import Settings

RAY_KILLS_RATIO = 0.95
TOKEN_BYTES = 60  # ids, masks and log-probabilities of one token, as the driver holds them
CACHE_LEFT_A_STEP = 0.6
DISK_BASE_RATIO = 0.35


class HostLevel(NamedTuple):
    """What the node holds for one stretch of time. Bytes."""

    used: float
    shm: float
    disk: float
    driver: float
    workers: tuple[float, ...]
    engines: tuple[float, ...]


class HostSide:
    """What accumulates on one node. A restart frees all but the disk."""

    def __init__(self, nature: Nature, settings: Settings, has: Resident) -> None:
        self._nature, self._settings, self._has = nature, settings, has
        self._disk = DISK_BASE_RATIO * nature.host.disk_total_bytes
        self.restart(0)

    def restart(self, step: int) -> None:
        self._since = step
        self._driver = self._plasma = self._pinned = self._engines = self._cache = 0.0

    def end_of_step(self, step: int, tokens: int) -> None:
        nature = self._nature
        if step >= nature.driver_kept_from:
            self._driver += nature.driver_kept * tokens
        self._plasma += nature.plasma_kept * tokens
        self._disk += nature.spill_kept * tokens
        if step < nature.pinned_until:
            self._pinned += nature.pinned * self._offloaded()
        if self._settings.sleeps:
            self._engines += nature.engine_host * self._has.engine_weights
        self._cache *= CACHE_LEFT_A_STEP

    def checkpointed(self) -> None:
        states = self._has.params + self._has.optimizer
        self._cache += self._nature.cache * states * self._settings.gpus

    def _offloaded(self) -> float:
        """Of one rank."""
        settings, has = self._settings, self._has
        kept = has.params if settings.params_offloaded else 0.0
        kept += has.optimizer if settings.optimizer_offloaded else 0.0
        kept += has.ref if settings.ref_offloaded else 0.0
        kept += has.critic_params if settings.critic_params_offloaded else 0.0
        return kept + (has.critic_optimizer if settings.critic_optimizer_offloaded else 0.0)

    def level(self, step: int, tokens: int, activations: float = 0.0) -> HostLevel:
        """`activations` are those that one rank has moved to the host for the moment."""
        host, settings, nature = self._nature.host, self._settings, self._nature
        each = host.worker_bytes + self._offloaded() + self._pinned + activations
        leaking = nature.worker_host.at(step, self._since)
        workers = tuple(each + (leaking if rank == 0 else 0.0) for rank in range(settings.gpus))
        copies = self._engines + (self._has.engine_weights if settings.sleeps else 0.0)
        engines = tuple(host.engine_bytes + copies for _ in range(max(1, settings.gpus // settings.tensor_parallel)))
        driver = host.driver_bytes + self._driver + TOKEN_BYTES * tokens
        plasma = self._plasma + TOKEN_BYTES * tokens
        shm = min(plasma, 0.9 * host.shm_total_bytes)
        used = host.base_bytes + driver + sum(workers) + sum(engines) + shm + self._cache
        return HostLevel(used, shm, self._disk + plasma - shm, driver, workers, engines)

    def fails(self, level: HostLevel) -> str | None:
        """What the node dies of at this level, if it does."""
        host = self._nature.host
        if level.used >= RAY_KILLS_RATIO * min(host.total_bytes, host.limit_bytes or host.total_bytes):
            return "host"
        return "disk" if level.disk >= host.disk_total_bytes else None
