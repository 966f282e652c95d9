"""What nobody configures: growth, leaks, neighbours, and how much dearer reality is than the arithmetic."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

FOREVER = 10**9


class Growth(NamedTuple):
    """Something that grows by so much a step, from a step on, until another."""

    per_step: float = 0.0
    onset: int = 0
    until: int = FOREVER
    jump: float = 0.0  # at the onset, at once

    def at(self, step: float, since: int = 0) -> float:
        """Its size at a step, where it began again (a restart) at step `since`."""
        begun = max(self.onset, since)
        if step < begun:
            return 0.0
        return self.jump * (since <= self.onset) + self.per_step * max(0.0, min(step, self.until) - begun)


class LengthCourse(NamedTuple):
    """The median response length over the run: it goes from one to the other, and stays there."""

    start: float
    end: float
    over_steps: int
    onset: int = 0
    spread: float = 0.45
    wobble: float = 0.03  # of the median, from step to step
    long_batch_every: int | None = None  # about so often one step's responses are far longer
    long_batch_times: float = 2.0

    def median_at(self, step: int) -> float:
        share = min(1.0, max(0.0, (step - self.onset) / self.over_steps))
        return self.start + (self.end - self.start) * share


class Host(NamedTuple):
    """The machine around the GPUs. Bytes."""

    total_bytes: float
    limit_bytes: float | None  # the container's
    shm_total_bytes: float
    disk_total_bytes: float
    base_bytes: float  # the system, and what else runs
    worker_bytes: float  # one rank's process, without what is offloaded
    engine_bytes: float
    driver_bytes: float


class Nature(NamedTuple):
    """All rates are bytes a step; none of them is in a healthy run but those that end."""

    lengths: LengthCourse
    host: Host
    context_bytes: float  # CUDA context and NCCL of the trainer
    residue_bytes: float  # of a sleeping engine
    slack: float = 0.03  # what the allocator keeps beyond what is asked for
    costs: Mapping[str, float] = MappingProxyType({})  # phase -> how many times the arithmetic a token really takes
    leak: Growth = Growth()  # tensors kept on the device
    leak_gpu: int | None = None  # None: on all
    residue: Growth = Growth()  # left by sleep, of a pool as large as the configured one at first
    residue_of_utilization: float = 0.5
    stuck: Growth = Growth()  # as a share of the largest update's activations: holes that cannot be given back
    sync_kept: Growth = Growth()  # buffers of weight transfers, of buckets of 2 GiB
    sync_noise: float = 0.0  # what a switch needs more than usual, as a share of the card (exponential)
    tenant: Growth = Growth()  # another program on the card
    tenant_gpu: int = 0
    checkpoint_device: float = 0.0  # whole parameters gathered on rank 0, bytes a parameter
    checkpoint_noise: float = 0.0  # how differently much of it comes together, as a share (exponential)
    checkpoint_kept: Growth = Growth()  # left by each checkpoint on rank 0 (per checkpoint)
    driver_kept: float = 0.0  # bytes a token and step that the driver holds on to
    driver_kept_from: int = 0
    worker_host: Growth = Growth()  # one worker process
    pinned: float = 0.0  # share of what is offloaded that each step leaves pinned
    pinned_until: int = FOREVER
    engine_host: float = 0.0  # share of the weights that each sleep leaves on the host
    plasma_kept: float = 0.0  # bytes a token and step in Ray's object store
    spill_kept: float = 0.0  # bytes a token and step on the disk
    cache: float = 0.0  # page cache of a checkpoint that counts as used for a while, as a share of the states
    restarts: tuple[tuple[int, int], ...] = ()  # before which steps a run is started again, and from how many before
    after_restart: tuple[float, ...] = ()  # what the processes of each further life hold more, bytes
    restart_every: int | None = None  # somebody restarts it from its checkpoints
    retries_at: float = 0.0  # chance a step that a healthy allocator flushes its cache
