"""What else a run dies of or suffers from: a full disk, a small /dev/shm, and collectives that failed.

A collective that fails or times out is often what the other ranks see of one that ran out of memory.
"""

import re

from oomwatch import wire
from oomwatch_agent.logs.pattern import Bodies, Pattern
from oomwatch_agent.logs.units import NUMBER, SIZE_UNIT, byte_count, count_of, number_of

_RAY_DISK = re.compile(
    rf"\S{{1,300}} is over (?P<percent>{NUMBER})% full"
    rf"(?:, available space: (?P<free>{NUMBER}) ?(?P<free_unit>{SIZE_UNIT}); "
    rf"capacity: (?P<size>{NUMBER}) ?(?P<size_unit>{SIZE_UNIT}))?"
)
_NO_SPACE = re.compile(r"(?:\w{1,60}Error: )?\[Errno 28\] No space left on device(?P<shm>: '/dev/shm/)?")

_RAY_SHM = re.compile(
    r"The object store is using \S{1,200} instead of /dev/shm because /dev/shm has only (?P<available>\d{1,16}) bytes "
    rf"available\.(?:.{{0,400}}--shm-size=(?P<wanted>{NUMBER})gb)?"
)
_RAY_STORE = re.compile(
    rf"ValueError: The configured object store size \((?P<wanted>{NUMBER}) GB\) exceeds /dev/shm size "
    rf"\((?P<available>{NUMBER}) GB\)"
)
_DATALOADER = re.compile(
    r"Unexpected bus error encountered in worker\. This might be caused by insufficient shared memory \(shm\)"
    r"|RuntimeError: DataLoader worker \(pid(?:\(s\))? [\d, ]{1,200}\) (?:is killed by signal: Bus error"
    r"|exited unexpectedly with exit code -7)"
)
_BILLION = 10**9  # Ray divides by 1e9 in the second message, and by 2**30 in the first

_WATCHDOG = re.compile(r"(?:\[[^\]]{0,120}Rank \d{1,7}\] )?Watchdog caught collective operation timeout: WorkNCCL\(")
_NCCL = re.compile(
    r"(?:torch\.distributed\.DistBackendError|RuntimeError|torch\.distributed\.DistError): "
    r"(?:\[[^\]]{1,40}\] is setting up NCCL communicator.{0,400}?|NCCL error in: \S{1,300}:\d{1,6}, )"
    r"(?P<what>unhandled cuda error|unhandled system error|remote process exited|internal error|invalid usage)",
    re.IGNORECASE,
)
_RESULT = re.compile(r"nccl(?P<what>UnhandledCudaError|SystemError|RemoteError): ")
_NCCL_WORDS = {
    "unhandled cuda error": "unhandled CUDA error",
    "unhandledcudaerror": "unhandled CUDA error",
    "unhandled system error": "system error",
    "systemerror": "system error",
    "remote process exited": "remote error",
    "remoteerror": "remote error",
    "internal error": "internal error",
    "invalid usage": "invalid usage",
}


def _read_disk(match: re.Match[str]) -> Bodies:
    free, size = number_of(match["free"]), number_of(match["size"])
    percent = number_of(match["percent"])
    ratio = None if percent is None else percent / 100
    if free is not None and size and match["free_unit"] == match["size_unit"] and 0 <= free <= size:
        ratio = 1 - free / size
    return (wire.DiskFull(reporter="ray", used_ratio=ratio),) if ratio is None or 0 <= ratio <= 1 else ()


def _read_no_space(match: re.Match[str]) -> Bodies:
    return (wire.ShmSmall(reporter="errno"),) if match["shm"] else (wire.DiskFull(reporter="errno"),)


def _read_ray_shm(match: re.Match[str]) -> Bodies:
    wanted = match["wanted"]
    return (
        wire.ShmSmall(
            reporter="ray",
            available_bytes=count_of(match["available"]),
            wanted_bytes=byte_count(wanted) if wanted else None,
        ),
    )


def _read_ray_store(match: re.Match[str]) -> Bodies:
    return (
        wire.ShmSmall(
            reporter="ray", available_bytes=_billions(match["available"]), wanted_bytes=_billions(match["wanted"])
        ),
    )


def _billions(raw: str) -> int | None:
    number = number_of(raw)
    return byte_count(number * _BILLION, "bytes") if number is not None else None


def _read_dataloader(_: re.Match[str]) -> Bodies:
    return (wire.ShmSmall(reporter="torch"),)


def _read_watchdog(_: re.Match[str]) -> Bodies:
    return (wire.NcclError(error="timeout"),)


def _read_nccl(match: re.Match[str]) -> Bodies:
    return (wire.NcclError(error=_NCCL_WORDS[match["what"].lower()]),)


PATTERNS = (
    Pattern(
        name="Ray disk",
        gate="% full",
        regex=_RAY_DISK,
        read=_read_disk,
        example=(
            "(raylet) [2026-07-24 16:31:15,298 E 211 211] (raylet) file_system_monitor.cc:116: /tmp/ray/session_2026 "
            "is over 95% full, available space: 147.493 GB; capacity: 3519.75 GB. Object creation will fail"
        ),
        expect=("DiskFull",),
    ),
    Pattern(
        name="no space left",
        gate="No space left",
        regex=_NO_SPACE,
        read=_read_no_space,
        example="OSError: [Errno 28] No space left on device",
        expect=("DiskFull",),
    ),
    Pattern(
        name="Ray object store",
        gate="object store",
        regex=_RAY_SHM,
        read=_read_ray_shm,
        example=(
            "2025-01-14 03:08:29,081\tWARNING services.py:2022 -- WARNING: The object store is using /tmp instead of "
            "/dev/shm because /dev/shm has only 67108864 bytes available. This will harm performance! You may be able "
            "to free up space by deleting files in /dev/shm. If you are inside a Docker container, you can increase "
            "/dev/shm size by passing '--shm-size=5.04gb' to 'docker run' (or add it to the run_options list in a Ray "
            "cluster config). Make sure to set this to more than 30% of available RAM."
        ),
        expect=("ShmSmall",),
        seen_in="InftyAI/llmaz issue 238",
    ),
    Pattern(
        name="Ray object store, refused",
        gate="object store",
        regex=_RAY_STORE,
        read=_read_ray_store,
        example=(
            "ValueError: The configured object store size (20.0 GB) exceeds /dev/shm size (0.067108864 GB). This will "
            "harm performance."
        ),
        expect=("ShmSmall",),
    ),
    Pattern(
        name="torch DataLoader",
        gate="shared memory (shm)",
        regex=_DATALOADER,
        read=_read_dataloader,
        example=(
            "  0%|                                                     | 0/5 [00:00<?, ?it/s]ERROR: Unexpected bus "
            "error encountered in worker. This might be caused by insufficient shared memory (shm)."
        ),
        expect=("ShmSmall",),
        seen_in="hongsukchoi/TCMR_RELEASE issue 24",
    ),
    Pattern(
        name="torch DataLoader, killed",
        gate="DataLoader worker",
        regex=_DATALOADER,
        read=_read_dataloader,
        example=(
            "RuntimeError: DataLoader worker (pid 46794) is killed by signal: Bus error. It is possible that "
            "dataloader's workers are out of shared memory. Please try to raise your shared memory limit."
        ),
        expect=("ShmSmall",),
        seen_in="hkchengrex/STCN issue 132",
    ),
    Pattern(
        name="NCCL timeout",
        gate="Watchdog caught",
        regex=_WATCHDOG,
        read=_read_watchdog,
        example=(
            "[rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation "
            "timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168, NumelOut=466119168, "
            "Timeout(ms)=600000) ran for 600060 milliseconds before timing out."
        ),
        expect=("NcclError",),
        seen_in="hiyouga/LlamaFactory issue 7396",
    ),
    Pattern(
        name="NCCL error",
        gate="NCCL error in",
        regex=_NCCL,
        read=_read_nccl,
        example=(
            "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, "
            "remote process exited or there was a network error, NCCL version 2.21.5"
        ),
        expect=("NcclError",),
    ),
    *(
        Pattern(name=name, gate=gate, regex=_RESULT, read=_read_nccl, example=example, expect=("NcclError",))
        for name, gate, example in (
            ("NCCL, CUDA", "ncclUnhandledCudaError", "ncclUnhandledCudaError: Call to CUDA function failed."),
            (
                "NCCL, system",
                "ncclSystemError",
                "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
            ),
            (
                "NCCL, remote",
                "ncclRemoteError",
                "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting.",
            ),
        )
    ),
)
