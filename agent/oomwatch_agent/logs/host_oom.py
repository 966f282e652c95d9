"""The host out of memory, and GPUs that the driver gave up: Ray, the kernel, Slurm, Kubernetes, exit codes, Xid.

Anchored like the rest: what Ray *guesses* ("the process is killed by SIGKILL by OOM killer" is the first of three
guesses in every SYSTEM_ERROR text) gives nothing, and neither does the kernel's chatter around a kill: one line a kill
counts.
"""

import re

from oomwatch import wire
from oomwatch_agent.logs.pattern import Bodies, Pattern
from oomwatch_agent.logs.units import NUMBER, SIZE_UNIT, byte_count, count_of

# Ray 2.2 to 2.60. The sentence before it may be on the same line or on the one above; the part about the task is
# optional, and newer ones name the lease.
_RAY_NODE = re.compile(
    r"\s{0,8}(?:.{0,300}?(?P<kills>\d{1,6}) worker\(s\) were killed due to the node running low on memory\.\s*"
    r"|.{0,2000}?killed due to the node running low on memory\.\s*)?"
    r"Memory on the node (?:\(IP: [^)]{0,150}\) )?"
    r"(?:where the \w+ (?:\((?P<task>[^)]{0,300}(?:\([^)]*\)[^)]{0,100})?)\) )?was running )?"
    rf"was (?P<used>{NUMBER}) ?(?P<used_unit>{SIZE_UNIT}) / (?P<limit>{NUMBER}) ?(?P<limit_unit>{SIZE_UNIT})\b"
)
_RAY_TASK_NAME = re.compile(r"\bname=(?P<name>[\w.:\-]{1,100})")
_RAY_TASK_PID = re.compile(r"\bpid=(?P<pid>\d{1,10})\b")
_RAY_SUMMARY = re.compile(
    r"(?P<kills>\d{1,6}) Workers? \(tasks / actors\) killed due to memory pressure \(OOM\)", re.IGNORECASE
)
# Red Hat's 3.10 puts the first half on a line of its own ("Kill process N ... or sacrifice child").
_KERNEL = re.compile(
    r"(?:(?:Memory cgroup out of memory|Out of memory(?: \([^)]{0,60}\))?): )?Killed process (?P<pid>\d{1,10}),? "
    r"\((?P<process>[^)]{0,64})\)(?P<rest>,? (?:UID:? ?\d{1,10},? )?total-vm:\d{1,20}kB.{0,1000})"
)
_KERNEL_RSS = re.compile(r"\b(?:anon|file|shmem)-rss:(\d{1,15})kB")
_SLURM = re.compile(
    r"(?:[\w.\-]{1,80}: ){0,3}Detected (?P<kills>\d{1,6}) oom[-_]kill event(?:s|\(s\))? in (?:StepId=|step )\S+",
    re.IGNORECASE,
)
_SLURM_TASK = re.compile(
    r"srun: error: \S{1,80}: tasks? [\d,\-\[\]]{1,60}: Out Of Memory$"
    r"|(?:[\w.\-]{1,80}: ){0,3}Exceeded (?:job|step) memory limit(?: at some point)?\.?$"
)
# As kubectl describe, get -o yaml and get print it, and as Argo's message has it.
_KUBERNETES = re.compile(
    r"(?:\s{0,40}(?:Last State|State): {1,20}Terminated)?\s{0,40}[Rr]eason: {1,20}OOMKilled$"
    r"|[\w.\-]{1,253} +\d{1,3}/\d{1,3} +OOMKilled +\d{1,9}\b(?: +\S{1,60}){0,9}$"
    r"|(?:[\w.\-]{1,253}: )?OOMKilled \(exit code:? 137\)\.?$"
)
# 137 is any SIGKILL, so that a launcher's record of it is a hint, and a sentence about it nothing: each is a whole
# line. What kubectl prints of a pod ("Exit Code: 137") is not asked: the line above it says whether it was memory.
_EXIT = re.compile(
    r"srun: error: \S{1,80}: tasks? [\d,\-\[\]]{1,60}: Exited with exit code 137$"
    r"|Process finished with exit code 137 \(interrupted by signal 9: ?SIGKILL\)$"
    r"|command terminated with (?:non-zero )?exit code 137$"
    r"|[\w.\-]{1,80}[-_]\d{1,5} exited with code 137(?: \(restarting\))?$"
    r"|\s{0,20}exitcode {1,3}: 137 \(pid: \d{1,10}\)$"
)
_XID = re.compile(r"NVRM: Xid \(PCI:(?P<bus>[0-9a-fA-F:.]{4,20})\): (?P<xid>\d{1,5})\b")
# 79: fallen off the bus. 119, 120: the GPU's own processor no longer answers. Others (13, 31, 43, 45 ...) are errors
# of programs, or of memory that the driver can retire: the GPU stays.
_LOST_XIDS = (79, 119, 120)
_NAME = re.compile(r"[^\w.:\-/+ ]")


def _read_ray_node(match: re.Match[str]) -> Bodies:
    task = match["task"] or ""
    name, pid = _RAY_TASK_NAME.search(task), _RAY_TASK_PID.search(task)
    return (
        wire.HostOom(
            reporter="ray",
            process=name["name"] if name else None,
            pid=count_of(pid["pid"]) if pid else None,
            used_bytes=byte_count(match["used"], match["used_unit"]),
            limit_bytes=byte_count(match["limit"], match["limit_unit"]),
            kills=count_of(match["kills"]) or 1,
        ),
    )


def _read_ray_summary(match: re.Match[str]) -> Bodies:
    kills = count_of(match["kills"])
    return (wire.HostOom(reporter="ray", kills=kills),) if kills else ()


def _read_kernel(match: re.Match[str]) -> Bodies:
    resident_kib = sum(int(part) for part in _KERNEL_RSS.findall(match["rest"]))
    return (
        wire.HostOom(
            reporter="kernel",
            process=_NAME.sub("", match["process"]) or None,
            pid=count_of(match["pid"]),
            used_bytes=byte_count(float(resident_kib), "KiB") if resident_kib else None,
        ),
    )


def _read_slurm(match: re.Match[str]) -> Bodies:
    kills = count_of(match["kills"])
    return (wire.HostOom(reporter="slurm", kills=kills),) if kills else ()


def _read_slurm_task(_: re.Match[str]) -> Bodies:
    return (wire.HostOom(reporter="slurm"),)


def _read_kubernetes(_: re.Match[str]) -> Bodies:
    return (wire.HostOom(reporter="kubernetes"),)


def _read_exit(_: re.Match[str]) -> Bodies:
    return (wire.HostOom(reporter="exit code"),)


def _read_xid(match: re.Match[str]) -> Bodies:
    xid = int(match["xid"])
    return (wire.GpuLost(xid=xid, pci_bus_id=match["bus"].lower()),) if xid in _LOST_XIDS else ()


PATTERNS = (
    Pattern(
        name="Ray kill",
        gate="Memory on the node",
        regex=_RAY_NODE,
        read=_read_ray_node,
        example=(
            "Memory on the node (IP: 192.0.2.7, ID: 90efe9) where the lease (lease ID: 0100, name=WorkerDict.__init__, "
            "pid=3048, memory used=49.21GB) was running was 726.33GB / 760.00GB (0.9557), which exceeds the memory "
            "usage threshold of 0.95. Ray killed this worker"
        ),
        expect=("HostOom",),
    ),
    Pattern(
        name="Ray summary",
        gate="memory pressure",
        regex=_RAY_SUMMARY,
        read=_read_ray_summary,
        example=(
            "(raylet) [2026-05-03 07:23:59,445 E 395 395] (raylet) node_manager.cc:3049: 10 Workers (tasks / actors) "
            "killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: e5d9)"
        ),
        expect=("HostOom",),
    ),
    Pattern(
        name="kernel",
        gate="Killed process",
        regex=_KERNEL,
        read=_read_kernel,
        example=(
            "Nov 29 13:50:26 node7 kernel: [8812.104] Memory cgroup out of memory: Killed process 4127 "
            "(ray::TaskRunner) total-vm:331200kB, anon-rss:241172480kB, file-rss:1024kB, shmem-rss:0kB, UID:0"
        ),
        expect=("HostOom",),
    ),
    Pattern(
        name="Slurm",
        gate="Detected ",
        regex=_SLURM,
        read=_read_slurm,
        example="slurmstepd: error: Detected 1 oom_kill event in StepId=1813.0. Some of the step tasks have been ...",
        expect=("HostOom",),
    ),
    Pattern(
        name="Slurm task",
        gate="Out Of Memory",
        regex=_SLURM_TASK,
        read=_read_slurm_task,
        example="srun: error: node7: task 0: Out Of Memory",
        expect=("HostOom",),
    ),
    Pattern(
        name="Slurm before 19",
        gate="memory limit",
        regex=_SLURM_TASK,
        read=_read_slurm_task,
        example="slurmstepd: error: Exceeded step memory limit at some point.",
        expect=("HostOom",),
    ),
    Pattern(
        name="Kubernetes",
        gate="OOMKilled",
        regex=_KUBERNETES,
        read=_read_kubernetes,
        example="      Reason:       OOMKilled",
        expect=("HostOom",),
    ),
    *(
        Pattern(name=name, gate=gate, regex=_EXIT, read=_read_exit, example=example, expect=("HostOom",))
        for name, gate, example in (
            ("exit code 137", "xit code", "command terminated with exit code 137"),
            ("exit code 137, torchrun", "exitcode", "  exitcode  : 137 (pid: 4127)"),
            ("exit code 137, docker", "exited with code", "trainer-1 exited with code 137"),
        )
    ),
    Pattern(
        name="Xid",
        gate="NVRM: Xid",
        regex=_XID,
        read=_read_xid,
        example="[882.104312] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.",
        expect=("GpuLost",),
    ),
)
