"""What the probes of a simulated run say: torch's allocator in every rank, in step with the run's memory and log.

The probe is in the trainer's processes alone: the pool of an engine that sleeps would stay counted by torch.
"""

from collections.abc import Iterator

import msgspec

from oomwatch import wire
from oomwatch_agent.scenario import CARD_USABLE_GIB, Moment
from oomwatch_agent.simulated_verl import Cast
from oomwatch_agent.source import Found

GIB = 1024**3
CONTEXT_GIB = 0.6  # of a card, what no process is charged with
_OUTSIDE_TORCH_GIB = 1.4  # of a trainer's process: its CUDA context and NCCL's buffers
# What a trainer has reserved beside a leak while the engine is awake, and the share in use: as its lines say it.
_RESERVED_BESIDE_ENGINE_GIB = {"gen": 4.0, "update_weights": 24.0}
_IN_USE_RATIO = {"gen": 0.5, "update_weights": 0.75}
_IN_USE_OTHERWISE_RATIO = 0.84
_SPLIT_RATIO = 0.6  # of what is cached and free: in pieces of blocks that are partly in use
_FULL_ABOVE_GIB = CARD_USABLE_GIB - 1.2  # a micro batch more, and the allocator has to give its cache back


class Held(msgspec.Struct, frozen=True):
    """What the two processes on one GPU hold, in GiB."""

    trainer_gib: float
    engine_gib: float

    @property
    def reserved_gib(self) -> float:
        return max(0.0, self.trainer_gib - _OUTSIDE_TORCH_GIB)


def held(moment: Moment, used_gib: float) -> Held:
    """Who holds a GPU's memory: an engine that is awake all but the trainer's part, one that sleeps its residue."""
    rest_gib = max(0.0, used_gib - CONTEXT_GIB)
    beside_gib = _RESERVED_BESIDE_ENGINE_GIB.get(moment.phase)
    if beside_gib is None:
        engine_gib = min(rest_gib, moment.residue_gib)
        return Held(rest_gib - engine_gib, engine_gib)
    trainer_gib = min(rest_gib, beside_gib + moment.leaked_gib + _OUTSIDE_TORCH_GIB)
    return Held(trainer_gib, rest_gib - trainer_gib)


class Allocator:
    """torch's allocator in one process: what it counts since the process started. `see` follows the story."""

    def __init__(self, rank: int, pid: int, gpu_uuid: str, run: str) -> None:
        self._who = wire.TorchSample(pid=pid, gpu=gpu_uuid, run=run, rank=rank, role="actor")
        self._reserved_peak_bytes = self._allocated_peak_bytes = 0
        self._retries = self._ooms = 0
        self._was_full = False

    def see(self, moment: Moment, used_gib: float) -> wire.TorchSample:
        """The reading at a time within `moment` at which `used_gib` of the GPU are in use."""
        reserved_gib = held(moment, used_gib).reserved_gib
        allocated_gib = _allocated_gib(moment, reserved_gib)
        self._count(moment, used_gib)
        reserved, allocated = _bytes(reserved_gib), _bytes(allocated_gib)
        self._reserved_peak_bytes = max(self._reserved_peak_bytes, reserved)
        self._allocated_peak_bytes = max(self._allocated_peak_bytes, allocated)
        return msgspec.structs.replace(
            self._who,
            reserved_bytes=reserved,
            allocated_bytes=allocated,
            active_bytes=allocated,
            inactive_split_bytes=_bytes((reserved_gib - allocated_gib) * _SPLIT_RATIO),
            reserved_peak_bytes=self._reserved_peak_bytes,
            allocated_peak_bytes=self._allocated_peak_bytes,
            alloc_retries_total=self._retries,
            ooms_total=self._ooms,
        )

    def _count(self, moment: Moment, used_gib: float) -> None:
        """Each time the card becomes full the cache is given back; where the run ends by it, that was not enough."""
        dying = moment.ending == "device_oom"
        # In a rollout it is the engine that fills the card, unless the trainer is what fails.
        full = used_gib > _FULL_ABOVE_GIB and (dying or moment.phase != "gen")
        if full and not self._was_full:
            self._retries += 1
            self._ooms += dying
        self._was_full = full


def introductions(cast: Cast, gpu_uuids: list[str], run: str) -> Iterator[Found]:
    """Every rank's probe introduces itself."""
    for rank, (pid, uuid) in enumerate(zip(cast.ranks, gpu_uuids, strict=True)):
        body = wire.Probe(
            door="verl.plugins",
            torch_version="2.8.0",
            world_size=len(gpu_uuids),
            rank=rank,
            role="actor",
            gpus=(uuid,),
        )
        yield Found(body=body, origin=wire.Origin(source="probe", pid=pid, rank=rank), run=run)


def _allocated_gib(moment: Moment, reserved_gib: float) -> float:
    """What leaked is in use as far as torch can tell."""
    leaked_gib = min(reserved_gib, moment.leaked_gib)
    in_use_ratio = _IN_USE_RATIO.get(moment.phase, _IN_USE_OTHERWISE_RATIO)
    return leaked_gib + (reserved_gib - leaked_gib) * in_use_ratio


def _bytes(gib: float) -> int:
    return round(gib * GIB)
