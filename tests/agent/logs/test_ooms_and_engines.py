"""Out of memory on device and host, lost GPUs, full disks, and what rollout engines say."""

from typing import TypedDict

import pytest

from oomwatch import wire
from oomwatch_agent.logs.reader import LineReader

MIB, GIB = 1024**2, 1024**3


class Clauses(TypedDict, total=False):
    """What an out-of-memory text says."""

    tried_bytes: int
    total_bytes: int
    free_bytes: int
    process_used_bytes: int
    allocated_bytes: int
    reserved_unallocated_bytes: int
    local_index: int


def gib(number: float) -> int:
    return round(number * GIB)


def bodies(line: str) -> list[wire.EventBody]:
    return [found.body for found in LineReader().feed(line, 1)]


MODERN = (
    "CUDA out of memory. Tried to allocate 2.32 GiB. GPU 3 has a total capacity of 79.15 GiB of which 412.75 "
    "MiB is free. "
    "Process 2493055 has 12.02 GiB memory in use. Process 77 has 1.5 GiB memory in use. Including non-PyTorch "
    "memory, this "
    "process has 64.74 GiB memory in use. 71.00 GiB allowed; Of the allocated memory 61.02 GiB is allocated by "
    "PyTorch, "
    "with 120.00 MiB allocated in private pools (e.g., CUDA Graphs), and 2.11 GiB is reserved by PyTorch but "
    "unallocated. "
    "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
)
MODERN_CLAUSES: Clauses = {
    "tried_bytes": gib(2.32),
    "total_bytes": gib(79.15),
    "free_bytes": round(412.75 * MIB),
    "process_used_bytes": gib(64.74),
    "allocated_bytes": gib(61.02),
    "reserved_unallocated_bytes": gib(2.11),
    "local_index": 3,
}
OLD = (
    "CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 31.75 GiB total capacity; 29.99 GiB already allocated; "
    "445.94 MiB free; 30.27 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
    "max_split_size_mb to avoid fragmentation."
)
OLD_CLAUSES: Clauses = {
    "tried_bytes": 512 * MIB,
    "total_bytes": gib(31.75),
    "free_bytes": round(445.94 * MIB),
    "allocated_bytes": gib(29.99),
    "reserved_unallocated_bytes": gib(30.27) - gib(29.99),
    "local_index": 0,
}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"torch.OutOfMemoryError: {MODERN}", wire.DeviceOom(error="torch.OutOfMemoryError", **MODERN_CLAUSES)),
        (
            f"torch.cuda.OutOfMemoryError: {MODERN}",
            wire.DeviceOom(error="torch.cuda.OutOfMemoryError", **MODERN_CLAUSES),
        ),
        (
            f"ray.exceptions.RayTaskError(OutOfMemoryError): {MODERN}",
            wire.DeviceOom(error="OutOfMemoryError", **MODERN_CLAUSES),
        ),
        (f"ERROR 01-22 09:42:00 [core.py:58] {MODERN}", wire.DeviceOom(error="CUDA out of memory", **MODERN_CLAUSES)),
        (f"  | torch.OutOfMemoryError: {MODERN}", wire.DeviceOom(error="torch.OutOfMemoryError", **MODERN_CLAUSES)),
        (f"[rank2]: RuntimeError: {OLD}", wire.DeviceOom(error="RuntimeError", **OLD_CLAUSES)),
        (
            (
                "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 GiB. GPU 1 has a total "
                "capacity of 191.98 GiB "
                "of which 0 bytes is free. Of the allocated memory 180.00 GiB is allocated by PyTorch, and 1.00 "
                "GiB is reserved "
                "by PyTorch but unallocated."
            ),
            wire.DeviceOom(
                error="torch.OutOfMemoryError",
                tried_bytes=20 * GIB,
                total_bytes=gib(191.98),
                free_bytes=0,
                allocated_bytes=180 * GIB,
                reserved_unallocated_bytes=GIB,
                local_index=1,
            ),
        ),
        (
            (
                "RuntimeError: NPU out of memory. Tried to allocate 1.16 GiB (NPU 2; 60.97 GiB total capacity; "
                "54.00 GiB already "
                "allocated; 54.00 GiB current active; 1.25 GiB free; 58.00 GiB reserved in total by PyTorch) If "
                "reserved"
            ),
            wire.DeviceOom(
                error="RuntimeError",
                tried_bytes=gib(1.16),
                total_bytes=gib(60.97),
                free_bytes=gib(1.25),
                allocated_bytes=54 * GIB,
                reserved_unallocated_bytes=4 * GIB,
                local_index=2,
            ),
        ),
        (
            (
                "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
                "of 15.91 GiB."
            ),
            wire.DeviceOom(error="torch.OutOfMemoryError", tried_bytes=2 * GIB, total_bytes=gib(15.91), local_index=0),
        ),
        ("RuntimeError: CUDA error: out of memory", wire.DeviceOom(error="RuntimeError")),
        ("torch.AcceleratorError: CUDA error: out of memory", wire.DeviceOom(error="torch.AcceleratorError")),
        ("RuntimeError: Triton Error [CUDA]: out of memory", wire.DeviceOom(error="RuntimeError")),
        (
            "RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62",
            wire.DeviceOom(error="cumem_allocator"),
        ),
        (
            "(EngineCore_DP0 pid=9) CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62",
            wire.DeviceOom(error="cumem_allocator"),
        ),
        ("CUresult error: 2  file=csrc/core.cpp func=malloc line=104", wire.DeviceOom(error="torch_memory_saver")),
        (
            "[torch_memory_saver.cpp] CUresult error  result=2 file=csrc/torch_memory_saver.cpp func=cu_mem_create",
            wire.DeviceOom(error="torch_memory_saver"),
        ),
        ("[torch_memory_saver.cpp] CUresult error  result=1 file=csrc/torch_memory_saver.cpp func=resume", None),
        ("[torch_memory_saver.cpp] cuMemCreate CUDA_ERROR_OUT_OF_MEMORY (may not be an issue e.g. torch", None),
        ("RuntimeError: CUDA out of memory occurred when warming up sampler", wire.DeviceOom(error="RuntimeError")),
        ("CUDA out of memory may not be an issue", None),
        ("Cuda failure 'out of memory'", wire.DeviceOom(error="NCCL")),
        ("n1:41:53 [0] include/alloc.h:228 NCCL WARN Cuda failure 2 'out of memory'", wire.DeviceOom(error="NCCL")),
        ("Cuda failure 1 'invalid argument'", None),
        ("CUresult error: 201  file=csrc/core.cpp", None),
    ],
)
def test_a_gpu_out_of_memory_in_all_its_words(line: str, expected: wire.DeviceOom | None) -> None:
    assert bodies(line) == ([] if expected is None else [expected])


RAY_WHERE = "Memory on the node (IP: 192.0.2.7, ID: 90ef) "
RAY_FIGURES = "was 726.33GB / 760.00GB (0.9557), which exceeds the memory usage threshold of 0.95."
USED, LIMIT = gib(726.33), 760 * GIB


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            RAY_WHERE + "where the task (task ID: a675, name=main_task, pid=91085, memory used=24.99GB) was running "
            + RAY_FIGURES,
            wire.HostOom(reporter="ray", process="main_task", pid=91085, used_bytes=USED, limit_bytes=LIMIT),
        ),
        (
            RAY_WHERE + "where the lease (lease ID: 0100, name=1HsWorkerDict_0:0:WorkerDict.__init__, pid=3048, "
            "memory used=49.21GB) was running " + RAY_FIGURES,
            wire.HostOom(
                reporter="ray",
                process="1HsWorkerDict_0:0:WorkerDict.__init__",
                pid=3048,
                used_bytes=USED,
                limit_bytes=LIMIT,
            ),
        ),
        (
            RAY_WHERE + "where the task was running " + RAY_FIGURES,
            wire.HostOom(reporter="ray", used_bytes=USED, limit_bytes=LIMIT),
        ),
        (
            "(raylet) Task f failed due to oom. There are 2 oom retries remaining, so the task will be retried. Error: "
            "2 worker(s) were killed due to the node running low on memory. " + RAY_WHERE + RAY_FIGURES,
            wire.HostOom(reporter="ray", used_bytes=USED, limit_bytes=LIMIT, kills=2),
        ),
        (
            "2026-05-01 10:00:00,123\tWARNING worker.py:1839 -- A worker died or was killed while executing a "
            "task by an "
            "unexpected system error. Worker exit detail: Task was killed due to the node running low on memory. "
            + RAY_WHERE + "where the task was running " + RAY_FIGURES,
            wire.HostOom(reporter="ray", used_bytes=USED, limit_bytes=LIMIT),
        ),
        (
            ("(raylet, ip=192.0.2.7) [2026-05-03 07:23:59,445 E 395 395] (raylet) node_manager.cc:3049: 10 Workers "
            "(tasks / "
            "actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: e5d9)"),
            wire.HostOom(reporter="ray", kills=10),
        ),
        (
            ("Nov 29 13:50:26 node7 kernel: [8812.104] Memory cgroup out of memory: Killed process 4127 "
            "(ray::TaskRunner) total-vm:331200kB, anon-rss:2048kB, file-rss:1024kB, shmem-rss:1024kB, UID:0 "
            "oom_score_adj:0"),
            wire.HostOom(reporter="kernel", process="ray::TaskRunner", pid=4127, used_bytes=4 * MIB),
        ),
        (
            "[ 8812.104] Out of memory: Killed process 4127 (python3) total-vm:331200kB, anon-rss:2048kB",
            wire.HostOom(reporter="kernel", process="python3", pid=4127, used_bytes=2 * MIB),
        ),
        (
            ("slurmstepd: error: Detected 3 oom_kill events in StepId=1813.0. Some of the step tasks have been "
            "OOM Killed."),
            wire.HostOom(reporter="slurm", kills=3),
        ),
        (
            "slurmstepd: error: Detected 1 oom-kill event(s) in step 1813.batch cgroup.",
            wire.HostOom(reporter="slurm"),
        ),
        ("srun: error: node7: task 0: Exited with exit code 137", wire.HostOom(reporter="exit code")),
        ("Process finished with exit code 137 (interrupted by signal 9: SIGKILL)", wire.HostOom(reporter="exit code")),
        (
            ("(raylet) [2026-07-24 16:31:15,298 E 2 2] (raylet) file_system_monitor.cc:116: /tmp/ray/session_2026 "
            "is over 95% full, available space: 100 GB; capacity: 4000 GB. Object creation will fail"),
            wire.DiskFull(reporter="ray", used_ratio=0.975),
        ),
        ("/mnt/ray/session_2026 is over 95% full", wire.DiskFull(reporter="ray", used_ratio=0.95)),
        (
            "[882.1] NVRM: Xid (PCI:0000:3B:00): 79, pid='<unknown>', GPU has fallen off the bus.",
            wire.GpuLost(xid=79, pci_bus_id="0000:3b:00"),
        ),
        ("[882.1] NVRM: Xid (PCI:0000:3B:00): 43, pid=77, Ch 00000008", None),
    ],
)  # fmt: skip
def test_the_host_out_of_memory_in_all_its_words(line: str, expected: wire.EventBody | None) -> None:
    assert bodies(line) == ([] if expected is None else [expected])


KERNEL_PREFIXES = [
    "",
    "[882.104312] ",
    "[ 8812.104312] ",
    "[ 8812.104312][ T4127] ",
    "[ 8812.104312] [C12] ",
    "[ 8812.104312 <    0.000012>] ",
    "[Sun Nov 29 13:50:26 2026] ",
    "[Tue Dec  1 13:50:26 2026] ",
    "[Nov29 13:50] ",
    "[  +0.000012] ",
    "kern  :err   : [Sun Nov 29 13:50:26 2026] ",
    "kern  :alert : [ 8812.104312] ",
    "2026-11-29T13:50:26,123456+00:00 ",
    "3,1234,8812104312,-;",
    "Nov 29 13:50:26 node7 kernel: ",
    "Nov 29 13:50:26 node7 kernel: [ 8812.104312] ",
    "Nov  1 13:50:26.123456 node7 kernel: ",
    "Nov 29 2026 13:50:26 node7 kernel: ",
    "Nov 29 13:50:26 node7 kern.err kernel: ",
    "<3>Nov 29 13:50:26 node7 kernel: [ 8812.104312] ",
    "<3>1 2026-11-29T13:50:26.123456+00:00 node7 kernel - - - ",
    "<3>[ 8812.104312] ",
    "2026-11-29T13:50:26.123456+00:00 node7 kernel: ",
    "2026-11-29T13:50:26.123456+08:00 gpu-07.example.org kernel: [ 8812.104312] ",
    "2026-11-29T13:50:26.123456Z node7 kernel: ",
    "2026-11-29T13:50:26+0000 node7 kernel: ",
    "Sun 2026-11-29 13:50:26 UTC node7 kernel: ",
    "Sun 2026-11-29 13:50:26.123456 CET node7 kernel: ",
    "[ 8812.104312] node7 kernel: ",
    "1796000000.123456 node7 kernel: ",
]


@pytest.mark.parametrize("prefix", KERNEL_PREFIXES)
def test_the_kernel_is_heard_through_every_log_that_keeps_its_messages(prefix: str) -> None:
    for words in ("Out of memory", "Memory cgroup out of memory", "Out of memory (oom_kill_allocating_task)"):
        kill = f"{words}: Killed process 4127 (python3) total-vm:331200kB, anon-rss:2048kB"
        assert bodies(prefix + kill) == [
            wire.HostOom(reporter="kernel", process="python3", pid=4127, used_bytes=2 * MIB)
        ]
    xid = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    assert bodies(prefix + xid) == [wire.GpuLost(xid=79, pci_bus_id="0000:3b:00")]


def test_the_journal_as_json_is_heard() -> None:
    line = (
        '{"__REALTIME_TIMESTAMP":"1796000000123456","_TRANSPORT":"kernel","PRIORITY":"3","MESSAGE":"Memory cgroup out '
        'of memory: Killed process 4127 (python3) total-vm:331200kB, anon-rss:2048kB"}'
    )
    assert bodies(line) == [wire.HostOom(reporter="kernel", process="python3", pid=4127, used_bytes=2 * MIB)]


def test_a_program_is_heard_through_the_journal() -> None:
    line = "2026-11-29T13:50:26+0000 node7 train.sh[77]: (WorkerDict pid=8) RuntimeError: CUDA error: out of memory"
    assert bodies(line) == [wire.DeviceOom(error="RuntimeError")]


@pytest.mark.parametrize(
    "line",
    [
        "Exit code: 137 is what the grader expects",
        "Exit Code: 137",  # a pod that was killed for whatever reason
        "exit code 137",
        "returned exit code 137",
        "command terminated with exit code 137 when the memory was full",
        "command terminated with exit code 1370",
        "Process finished with exit code 137",
        "It exited with code 137",
        "trainer-1 exited with code 137 because of memory",
        "exitcode: 137 means that",
        "exitcode  : 137 (pid: 4127) is a line of torchrun",
        "srun: error: node7: task 0: Exited with exit code 137, so we looked",
        "srun: error: node7: task 0: Out Of Memory is what it says",
        "Exceeded step memory limit of the homework",
        "Reason: OOMKilled means that the limit was too low",
        "OOMKilled pods have exit code 137",
        "Killed process 4127 (python3) because of its memory",
        "Out of memory: Killed process 4127 (python3), said the kernel",
        "2026-11-29T13:50:26Z The log: RuntimeError: CUDA error: out of memory",
    ],
)
def test_a_sentence_about_a_kill_is_none(line: str) -> None:
    assert bodies(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "      Reason:       OOMKilled",
        "    Last State:     Terminated      Reason:       OOMKilled",
        "        reason: OOMKilled",
        "trainer-0   0/1     OOMKilled   0          3m12s",
        "trainer-0   0/2     OOMKilled   3 (91s ago)   3m12s   192.0.2.9   node7   <none>   <none>",
        "main: OOMKilled (exit code 137)",
        "OOMKilled (exit code: 137)",
    ],
)
def test_kubernetes_says_so_itself(line: str) -> None:
    assert bodies(line) == [wire.HostOom(reporter="kubernetes")]


@pytest.mark.parametrize(
    "line",
    [
        "command terminated with exit code 137",
        "trainer-1 exited with code 137",
        "my-rl-trainer-1 exited with code 137",
        "rl_trainer_1 exited with code 137 (restarting)",
        "  exitcode  : 137 (pid: 4127)",
        "srun: error: node7: tasks 0-3: Exited with exit code 137",
    ],
)
def test_a_launchers_whole_record_of_137_is_a_hint(line: str) -> None:
    assert bodies(line) == [wire.HostOom(reporter="exit code")]


VLLM = "INFO 01-22 09:42:00 [worker.py:1] "


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            VLLM + "Sleep mode freed 58.62 GiB memory, 7.87 GiB memory is still in use.",
            [wire.EngineSleep(freed_bytes=gib(58.62), still_used_bytes=gib(7.87))],
        ),
        (VLLM + "It took 1.5 seconds to fall asleep.", [wire.EngineSleep(seconds=1.5)]),
        (
            VLLM + "It took 0.51 seconds to wake up tags ['weights'].",
            [
                wire.EngineWake(seconds=0.51, tags=("weights",)),
                wire.Reshard(marker="wake_up_weights", seconds=0.51),
            ],
        ),
        (
            VLLM + "It took 0.51 seconds to wake up tags ['kv_cache'].",
            [wire.EngineWake(seconds=0.51, tags=("kv_cache",))],
        ),
        (
            VLLM + "It took 2.070000 seconds to wake up tags {'weights', 'kv_cache'}.",
            [
                wire.EngineWake(seconds=2.07, tags=("weights", "kv_cache")),
                wire.Reshard(marker="wake_up_weights", seconds=2.07),
            ],
        ),
        (VLLM + "Available KV cache memory: 64.27 GiB", [wire.EngineMemory(kv_available_bytes=gib(64.27))]),
        (VLLM + "Available KV cache memory: -1.50 GiB", [wire.EngineMemory(kv_available_bytes=-gib(1.5))]),
        (
            VLLM + "Engine 000: Avg prompt throughput: 8 tokens/s, Running: 9 reqs, GPU KV cache usage: 91.5%, Prefix",
            [wire.EngineMemory(kv_used_ratio=0.915)],
        ),
        (
            (
                "[2026-05-01 10:00:00 TP0] Decode batch. #running-req: 61, #token: 38000, token usage: 0.94, gen "
                "throughput"
            ),
            [wire.EngineMemory(kv_used_ratio=0.94)],
        ),
        (
            "[2026-05-01 10:00:00 TP0] KV Cache is allocated. #tokens: 408960, K size: 10.5 GB, V size: 10.5 GB",
            [wire.EngineMemory(kv_available_bytes=21 * GIB)],
        ),
    ],
)
def test_engines_tell_of_sleep_and_cache(line: str, expected: list[wire.EventBody]) -> None:
    assert bodies(line) == expected
