"""HostSource over real file trees laid out as the kernel lays out /proc and /sys."""

import itertools
import os
import resource
import shutil
import threading
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.host import HostSource
from oomwatch_agent.source import Found, Reading, SourceMissingError
from oomwatch_agent.spill_disk import SpillDisk

GIB = 1024**3
PAGE_BYTES = resource.getpagesize()
SOMEBODY = 4711


class Machine:
    """A file system root with 100 GiB of memory, 40 of them available, and no limit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.memory(total_gib=100, available_gib=40)
        self.write("proc/vmstat", "nr_free_pages 1\noom_kill 5\n")
        self.write("proc/pressure/memory", "some avg10=12.50 avg60=0.00 total=1\nfull avg10=2.00 avg60=0.00 total=1\n")
        self.write("proc/self/cgroup", "0::/\n")
        self.write("proc/self/mountinfo", "1 0 0:1 / / rw - ext4 /dev/sda1 rw\n")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def memory(self, *, total_gib: int, available_gib: int) -> None:
        kib = 1024**2
        self.write(
            "proc/meminfo",
            f"MemTotal:       {total_gib * kib} kB\nMemFree:         1 kB\nMemAvailable:   {available_gib * kib} kB\n"
            f"SwapTotal:      {8 * kib} kB\nSwapFree:       {6 * kib} kB\nHugePages_Total:       0\n",
        )

    def group(self, path: str = "/", *, mount_root: str = "/", mount: str = "/sys/fs/cgroup") -> None:
        """This process is in a version 2 group."""
        self.write("proc/self/cgroup", f"0::{path}\n")
        self.write("proc/self/mountinfo", f"1 0 0:1 {mount_root} {mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n")

    def limit(self, path: str, limit: int | str, *, used: int = 0, cache: int = 0, kills: int = 0) -> None:
        """Files of one version 2 group; `path` below /sys/fs/cgroup."""
        self.write(f"sys/fs/cgroup/{path}/memory.max", f"{limit}\n")
        self.write(f"sys/fs/cgroup/{path}/memory.current", f"{used}\n")
        self.write(f"sys/fs/cgroup/{path}/memory.stat", f"anon 1\nfile {2 * cache}\ninactive_file {cache}\n")
        self.write(f"sys/fs/cgroup/{path}/memory.events", f"low 0\noom 9\noom_kill {kills}\noom_group_kill 0\n")

    def process(
        self, pid: int, *, pages: int, command: str, environ: str = "", comm: str = "comm", size: int = 1000
    ) -> None:
        self.write(f"proc/{pid}/statm", f"{size} {pages} 10 1 0 500 0\n")
        self.write(f"proc/{pid}/stat", f"{pid} ({comm}) S 1 " + " ".join(str(field) for field in range(5, 53)))
        self.write(f"proc/{pid}/comm", f"{comm}\n")
        self.write(f"proc/{pid}/cmdline", command)
        self.write(f"proc/{pid}/environ", environ)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def no_disk() -> SpillDisk:
    """Of this machine's own Ray nothing shall be seen."""
    return SpillDisk(sessions=list, places=list)


def opened(machine: Machine) -> HostSource:
    source = HostSource(root=machine.root, spill_disk=no_disk())
    source.open()
    return source


def host(reading: Reading) -> wire.HostSample:
    assert reading.host is not None
    return reading.host


def host_facts(machine: Machine) -> wire.HostFacts:
    facts = HostSource(root=machine.root, spill_disk=no_disk()).open().host
    assert facts is not None
    return facts


def kills(found: tuple[Found, ...]) -> list[tuple[str, int]]:
    return [(each.body.reporter, each.body.kills) for each in found if isinstance(each.body, wire.HostOom)]


# ------------------------------------------------------------ memory


def test_used_memory_is_what_is_not_available(machine: Machine) -> None:
    sample = host(opened(machine).read(slow=False))
    assert sample.memory_used_bytes == 60 * GIB
    assert sample.swap_used_bytes == 2 * GIB
    assert sample.cgroup_used_bytes is None
    assert sample.processes is None


def test_the_facts_say_what_the_machine_is(machine: Machine) -> None:
    facts = host_facts(machine)
    assert (facts.memory_total_bytes, facts.memory_limit_bytes, facts.swap_total_bytes) == (100 * GIB, None, 8 * GIB)
    assert facts.kernel == os.uname().release


def test_memory_pressure_is_a_ratio(machine: Machine) -> None:
    sample = host(opened(machine).read(slow=False))
    assert (sample.memory_pressure_some_ratio, sample.memory_pressure_full_ratio) == (0.125, 0.02)


def test_shared_memory_is_read_where_it_is_mounted(machine: Machine) -> None:
    assert host(opened(machine).read(slow=False)).shm_used_bytes is None
    (machine.root / "dev/shm").mkdir(parents=True)
    actual = os.statvfs(machine.root / "dev/shm")
    assert host_facts(machine).shm_total_bytes == actual.f_blocks * actual.f_frsize
    assert host(opened(machine).read(slow=False)).shm_used_bytes is not None


def test_the_disk_that_ray_spills_to_is_read_with_the_limits(machine: Machine) -> None:
    blocks = [400]

    def usage(_folder: Path) -> os.statvfs_result:
        return os.statvfs_result((4096, 4096, 1000, blocks[0], blocks[0], 0, 0, 0, 0, 255))

    disk = SpillDisk(sessions=list, places=lambda: [Path("/x/ray")], usage=usage)
    source = HostSource(root=machine.root, spill_disk=disk)
    facts = source.open().host
    assert facts is not None
    assert (facts.disk_path, facts.disk_total_bytes) == ("/x/ray", 4_096_000)
    blocks[0] = 300
    assert host(source.read(slow=False)).disk_used_bytes == 600 * 4096
    assert host(source.read(slow=True)).disk_used_bytes == 700 * 4096


def test_what_a_kernel_does_not_tell_is_none(machine: Machine) -> None:
    (machine.root / "proc/pressure/memory").unlink()
    (machine.root / "proc/vmstat").unlink()
    machine.write("proc/meminfo", "MemTotal: 1024 kB\n")
    sample = host(opened(machine).read(slow=False))
    assert sample == wire.HostSample()


def test_without_proc_the_source_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SourceMissingError, match="meminfo"):
        HostSource(root=tmp_path, spill_disk=no_disk()).open()


def test_the_facts_name_the_addresses_that_others_know_the_node_by(machine: Machine) -> None:
    facts = HostSource(root=machine.root, spill_disk=no_disk(), addresses=lambda: ("192.0.2.7",)).open().host
    assert facts is not None
    assert facts.addresses == ("192.0.2.7",)


def test_the_address_of_a_container_with_a_large_process_is_one_of_the_nodes(machine: Machine) -> None:
    now = [0.0]
    machine.process(77, pages=9000, command="ray::WorkerDict")
    machine.write("proc/77/status", "NSpid:\t77\t5\n")
    machine.process(78, pages=9000, command="of this machine itself")
    machine.write("proc/78/net/fib_trie", "     |-- 10.0.0.9\n        /32 host LOCAL\n")
    machine.write("proc/77/net/fib_trie", "     |-- 10.244.1.7\n        /32 host LOCAL\n")
    source = HostSource(root=machine.root, spill_disk=no_disk(), addresses=lambda: ("192.0.2.7",), clock=lambda: now[0])
    source.open()
    source.read(slow=True)
    facts = source.read(slow=True).facts
    assert facts is not None
    assert facts.host is not None
    assert facts.host.addresses == ("10.244.1.7", "192.0.2.7")
    shutil.rmtree(machine.root / "proc/77")
    now[0] = 600.0
    source.read(slow=True)
    assert source.read(slow=True).facts is None, "its last lines may still come"
    now[0] = 601.0
    source.read(slow=True)
    facts = source.read(slow=True).facts
    assert facts is not None
    assert facts.host is not None
    assert facts.host.addresses == ("192.0.2.7",)


def test_this_very_machine_can_be_read() -> None:
    source = HostSource()
    facts = source.open().host
    sample = host(source.read(slow=True))
    assert facts is not None
    assert sample.memory_used_bytes is not None
    assert 0 < sample.memory_used_bytes < facts.memory_total_bytes
    assert sample.processes


# ------------------------------------------------------------ the limit of a container or job


def test_a_containers_limit_and_working_set_are_read(machine: Machine) -> None:
    machine.group()
    machine.limit("", 32 * GIB, used=30 * GIB, cache=4 * GIB)
    facts = host_facts(machine)
    assert (facts.memory_limit_bytes, facts.memory_limit_source) == (32 * GIB, "cgroup v2")
    assert host(opened(machine).read(slow=False)).cgroup_used_bytes == 26 * GIB


def test_the_tightest_limit_on_the_way_up_counts_with_its_own_use(machine: Machine) -> None:
    machine.group("/slurm/job_7/step_0")
    machine.limit("slurm/job_7/step_0", "max", used=1 * GIB)
    machine.limit("slurm/job_7", 20 * GIB, used=11 * GIB)
    machine.limit("slurm", 64 * GIB, used=50 * GIB)
    assert host_facts(machine).memory_limit_bytes == 20 * GIB
    assert host(opened(machine).read(slow=False)).cgroup_used_bytes == 11 * GIB


def test_a_tighter_limit_further_up_counts(machine: Machine) -> None:
    machine.group("/kubepods/pod7")
    machine.limit("kubepods/pod7", 64 * GIB, used=10 * GIB)
    machine.limit("kubepods", 48 * GIB, used=47 * GIB)
    assert host_facts(machine).memory_limit_bytes == 48 * GIB
    assert host(opened(machine).read(slow=False)).cgroup_used_bytes == 47 * GIB


@pytest.mark.parametrize("limit", ["max", 100 * GIB, 400 * GIB])
def test_a_limit_that_the_machine_cannot_reach_is_none(machine: Machine, limit: int | str) -> None:
    machine.group()
    machine.limit("", limit, used=GIB)
    assert host_facts(machine).memory_limit_bytes is None


def test_a_limit_for_the_agent_alone_is_not_the_trainers(machine: Machine) -> None:
    machine.group("/system.slice/agent.service")
    machine.limit("system.slice/agent.service", GIB // 4)
    machine.write("sys/fs/cgroup/system.slice/agent.service/cgroup.procs", f"{os.getpid()}\n")
    assert host_facts(machine).memory_limit_bytes is None
    machine.write("sys/fs/cgroup/system.slice/agent.service/trainer/cgroup.procs", f"{SOMEBODY}\n")
    assert host_facts(machine).memory_limit_bytes == GIB // 4


def test_the_agents_own_children_do_not_make_a_limit_the_trainers(machine: Machine) -> None:
    machine.group()
    machine.limit("", GIB // 4)
    machine.write("sys/fs/cgroup/cgroup.procs", f"{os.getpid()}\n{SOMEBODY}\n")
    machine.write(f"proc/{SOMEBODY}/status", f"Name:\tnvidia-smi\nPid:\t{SOMEBODY}\nPPid:\t{os.getpid()}\n")
    assert host_facts(machine).memory_limit_bytes is None
    machine.write(f"proc/{SOMEBODY}/status", f"Name:\tpython\nPid:\t{SOMEBODY}\nPPid:\t1\n")
    assert host_facts(machine).memory_limit_bytes == GIB // 4


def test_a_limit_that_is_changed_comes_as_new_facts(machine: Machine) -> None:
    machine.group()
    machine.limit("", 32 * GIB)
    source = opened(machine)
    machine.limit("", 48 * GIB)
    assert source.read(slow=False).facts is None
    changed = source.read(slow=True).facts
    assert changed is not None
    assert changed.host is not None
    assert changed.host.memory_limit_bytes == 48 * GIB
    assert source.read(slow=True).facts is None


def test_a_container_that_sees_its_own_group_as_the_top_finds_it(machine: Machine) -> None:
    """The path is the host's and the mount shows only the container's part: docker without its own cgroup namespace."""
    machine.group("/docker/abc", mount_root="/docker/abc")
    machine.limit("", 16 * GIB)
    assert host_facts(machine).memory_limit_bytes == 16 * GIB


def test_a_group_inside_a_container_is_found_below_the_containers_part(machine: Machine) -> None:
    machine.group("/docker/abc/trainer", mount_root="/docker/abc")
    machine.limit("trainer", 8 * GIB)
    assert host_facts(machine).memory_limit_bytes == 8 * GIB


def test_version_1_is_read_with_its_own_files(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job/task\n0::/\n")
    machine.write(
        "proc/self/mountinfo",
        "1 0 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "2 0 0:2 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
    )
    job = "sys/fs/cgroup/memory/job"
    machine.write(f"{job}/memory.limit_in_bytes", f"{24 * GIB}\n")
    machine.write(f"{job}/memory.usage_in_bytes", f"{20 * GIB}\n")
    machine.write(f"{job}/memory.stat", f"inactive_file 7\ntotal_inactive_file {5 * GIB}\n")
    machine.write(f"{job}/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    machine.write(f"{job}/task/memory.limit_in_bytes", "9223372036854771712\n")
    facts = host_facts(machine)
    assert (facts.memory_limit_bytes, facts.memory_limit_source) == (24 * GIB, "cgroup v1")
    source = opened(machine)
    first = source.read(slow=False)
    assert host(first).cgroup_used_bytes == 15 * GIB
    machine.write(f"{job}/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert kills(source.read(slow=False).found) == [("cgroup", 1)]


# ------------------------------------------------------------ kills


def test_a_rise_of_the_kernels_counter_is_an_event(machine: Machine) -> None:
    source = opened(machine)
    assert source.read(slow=False).found == (), "the first sight is no news"
    machine.write("proc/vmstat", "oom_kill 7\n")
    reading = source.read(slow=False)
    assert kills(reading.found) == [("kernel", 2)]
    assert host(reading).oom_kill_total == 7
    assert source.read(slow=False).found == ()


def test_a_counter_that_goes_back_is_no_event(machine: Machine) -> None:
    source = opened(machine)
    source.read(slow=False)
    machine.write("proc/vmstat", "oom_kill 0\n")
    assert source.read(slow=False).found == ()
    machine.write("proc/vmstat", "oom_kill 1\n")
    assert kills(source.read(slow=False).found) == [("kernel", 1)]


def test_a_kill_in_the_group_is_told_once_though_both_counters_rise(machine: Machine) -> None:
    machine.group()
    machine.limit("", 32 * GIB, used=31 * GIB, kills=1)
    source = opened(machine)
    source.read(slow=False)
    machine.limit("", 32 * GIB, used=31 * GIB, kills=2)
    machine.write("proc/vmstat", "oom_kill 6\n")
    (found,) = source.read(slow=False).found
    assert found.body == wire.HostOom(reporter="cgroup", kills=1, used_bytes=31 * GIB, limit_bytes=32 * GIB)


def test_a_kill_that_the_kernel_counts_a_moment_after_the_group_is_told_once(machine: Machine) -> None:
    machine.group()
    machine.limit("", 32 * GIB, kills=1)
    source = opened(machine)
    source.read(slow=False)
    machine.limit("", 32 * GIB, kills=2)
    assert kills(source.read(slow=False).found) == [("cgroup", 1)]
    machine.write("proc/vmstat", "oom_kill 7\n")
    assert kills(source.read(slow=False).found) == [("kernel", 1)], "two by the kernel, of which one is known"


# ------------------------------------------------------------ processes


def test_the_largest_processes_come_with_slow_reads(machine: Machine) -> None:
    for number in range(12):
        machine.process(100 + number, pages=1000 + number, command=f"/usr/bin/worker{number}\0--token\0secret\0")
    processes = host(opened(machine).read(slow=True)).processes
    assert processes is not None
    assert [process.pid for process in processes] == list(range(111, 101, -1))
    assert processes[0] == wire.HostProcess(pid=111, name="worker11", rss_bytes=1011 * PAGE_BYTES)


def test_a_process_carries_the_run_of_its_environment(machine: Machine) -> None:
    machine.process(7, pages=5, command="python\0train.py\0", environ="PATH=/bin\0OOMWATCH_RUN=grpo\0")
    machine.process(8, pages=4, command="python\0train.py\0", environ="SLURM_JOB_ID=42\0SLURM_JOB_NAME=ppo\0")
    processes = host(opened(machine).read(slow=True)).processes
    assert processes is not None
    assert [process.run for process in processes] == ["grpo", "ppo-42"]


def test_kernel_threads_are_read_once(machine: Machine) -> None:
    machine.process(2, pages=0, size=0, command="", comm="kthreadd")
    machine.process(7, pages=5, command="python\0")
    source = opened(machine)
    source.read(slow=True)
    machine.process(2, pages=9, command="would be seen if it were read again\0")
    processes = host(source.read(slow=True)).processes
    assert processes is not None
    assert [process.pid for process in processes] == [7]


def test_a_kernel_threads_number_given_to_a_program_is_read_again(machine: Machine) -> None:
    machine.process(2, pages=0, size=0, command="", comm="kworker")
    source = opened(machine)
    source.read(slow=True)
    shutil.rmtree(machine.root / "proc/2")
    source.read(slow=True)
    machine.process(2, pages=9, command="python\0")
    processes = host(source.read(slow=True)).processes
    assert processes is not None
    assert [process.pid for process in processes] == [2]


def test_a_process_that_ends_while_it_is_read_is_left_out(machine: Machine) -> None:
    (machine.root / "proc/99").mkdir()
    machine.process(7, pages=5, command="python\0")
    processes = host(opened(machine).read(slow=True)).processes
    assert processes is not None
    assert [process.pid for process in processes] == [7]


def test_a_small_process_that_grew_is_among_the_largest_at_once_where_memory_was_taken(machine: Machine) -> None:
    for number in range(30):
        machine.process(100 + number, pages=2000 + number, command=f"worker{number}\0")
    machine.process(7, pages=10, command="grower\0")
    source = opened(machine)
    source.read(slow=True)
    machine.process(7, pages=9000, command="grower\0")
    machine.memory(total_gib=100, available_gib=39)
    processes = host(source.read(slow=True)).processes
    assert processes is not None
    assert processes[0] == wire.HostProcess(pid=7, name="grower", rss_bytes=9000 * PAGE_BYTES)


def opened_with_small_ones_that_grew(machine: Machine) -> HostSource:
    """Of thirty large processes and a dozen small ones, all of which were read once."""
    for number in range(30):
        machine.process(100 + number, pages=2000 + number, command=f"worker{number}\0")
    for pid in range(7, 19):
        machine.process(pid, pages=10, command="small\0")
    source = opened(machine)
    source.read(slow=True)
    for pid in range(7, 19):
        machine.process(pid, pages=9000, command="grown\0")
    return source


def test_memory_that_a_large_process_took_has_no_small_one_read(machine: Machine) -> None:
    source = opened_with_small_ones_that_grew(machine)
    machine.process(129, pages=2029 + GIB // PAGE_BYTES, command="worker29\0")
    machine.memory(total_gib=100, available_gib=39)
    processes = host(source.read(slow=True)).processes
    assert processes is not None
    assert processes[0].pid == 129
    assert sum(process.name == "grown" for process in processes) == 2, "of those whose turn it was"


def test_small_processes_are_read_in_turns_and_each_within_a_minute(machine: Machine) -> None:
    source = opened_with_small_ones_that_grew(machine)
    seen = []
    for _ in range(6):
        processes = host(source.read(slow=True)).processes
        assert processes is not None
        seen.append(sum(process.name == "grown" for process in processes))
    assert seen == [2, 4, 6, 8, 10, 10]


def test_processes_that_come_and_go_while_they_are_read_hide_no_other(machine: Machine) -> None:
    over = threading.Event()

    def churn() -> None:
        for number in itertools.count():
            if over.is_set():
                return
            pid = 1000 + number % 40
            shutil.rmtree(machine.root / f"proc/{pid}", ignore_errors=True)
            machine.process(pid, pages=number % 3, command="ray::IDLE\0", size=number % 2)

    machine.process(7, pages=9000, command="trainer\0")
    source = opened(machine)
    churning = threading.Thread(target=churn)
    churning.start()
    try:
        for _ in range(100):
            processes = host(source.read(slow=True)).processes
            assert processes is not None
            assert (processes[0].pid, processes[0].rss_bytes) == (7, 9000 * PAGE_BYTES)
    finally:
        over.set()
        churning.join()
