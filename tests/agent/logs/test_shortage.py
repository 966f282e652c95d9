"""Full disks, small shared memory and failed collectives."""

import pytest

from oomwatch import wire
from oomwatch_agent.logs.reader import LineReader


def bodies(*lines: str) -> list[wire.EventBody]:
    reader = LineReader()
    return [one.body for line in lines for one in reader.feed(line, 1)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            (
                "2020-11-11 11:29:31,384\tWARNING services.py:1625 -- WARNING: The object store is using /tmp instead "
                "of /dev/shm because /dev/shm has only 67108864 bytes available. This may slow down performance!"
            ),
            wire.ShmSmall(reporter="ray", available_bytes=67108864),
        ),
        (
            "ValueError: The configured object store size (20.0 GB) exceeds /dev/shm size (0.067108864 GB). This",
            wire.ShmSmall(reporter="ray", available_bytes=67108864, wanted_bytes=20 * 10**9),
        ),
        (
            "RuntimeError: DataLoader worker (pid(s) 11011, 11012) exited unexpectedly with exit code -7",
            wire.ShmSmall(reporter="torch"),  # 7 is SIGBUS
        ),
        ("OSError: [Errno 28] No space left on device: '/dev/shm/torch_41'", wire.ShmSmall(reporter="errno")),
        ("OSError: [Errno 28] No space left on device: '/ckpt/a.pt'", wire.DiskFull(reporter="errno")),
        (
            (
                "[E ProcessGroupNCCL.cpp:458] [Rank 7] Watchdog caught collective operation timeout: WorkNCCL("
                "SeqNum=64088, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 25625543 milliseconds before timing out."
            ),
            wire.NcclError(error="timeout"),
        ),
        (
            (
                "RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:911, unhandled "
                "system error, NCCL version 2.14.3"
            ),
            wire.NcclError(error="system error"),
        ),
        (
            (
                "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, "
                "unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5"
            ),
            wire.NcclError(error="unhandled CUDA error"),
        ),
        ("Cuda failure 2 'out of memory'", wire.DeviceOom(error="NCCL")),
        ("The answer: [Errno 28] No space left on device", None),
        ("Watchdog caught up with the cat.", None),
    ],
)
def test_what_programs_print_of_it(line: str, expected: wire.EventBody | None) -> None:
    assert bodies(line) == ([expected] if expected else [])


def test_a_collective_that_many_ranks_give_up_is_told_once_a_rank() -> None:
    text = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE) ran for 600060"
    lines = [f"[rank{rank}]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank {rank}] {text}" for rank in (0, 4)]
    assert len(bodies(*lines, *lines)) == 2


def test_kills_that_ray_folded_are_counted() -> None:
    line = (
        "(raylet) 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed "
        "[repeated 3x across cluster]"
    )
    assert bodies(line) == [wire.HostOom(reporter="ray", kills=6)]
