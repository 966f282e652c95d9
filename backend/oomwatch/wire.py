"""Every message between agent, server and browser: protocol version 1.

This file is the spine of oomwatch. A fact has one type here, from the NVML border to the browser; the prose of the
protocol, with the order of messages and the rules of acknowledgement, is docs/reference/wire-protocol.md.

Conventions
    Times are Unix seconds (float), by the clock of whoever wrote the field; the server corrects an agent's skew.
    Memory is bytes, shares are ratios from 0 to 1, and every name carries its unit.
    A value that could not be read is None and is left out of the JSON text: missing is never 0.
    Receivers ignore fields they do not know, and count and skip message types they do not know.

Every struct is frozen. One message is one WebSocket text frame of JSON whose "type" field names the struct; the body of
an event is told apart by "kind".
"""

import enum
from typing import Annotated, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct

PROTOCOL_VERSION = 1

# Bounds that no honest sender reaches; a frame beyond them is refused where it is decoded, and nothing further in has
# to check again. A sender cuts what it found to them.
NAME_CHARS_MAX = 253  # the longest DNS host name
TEXT_CHARS_MAX = 2000
COUNT_MAX = 2**53  # what a browser can count without loss
RATIO_MAX = 1e6
WATTS_MAX = 1e5
CELSIUS_MIN, CELSIUS_MAX = -100.0, 1000.0
GPUS_MAX = 1024  # of a node
PROCESSES_MAX = 4096  # on a GPU
HOST_PROCESSES_MAX = 256
TORCH_MAX = 4096  # readings of torch's allocator in a sample
ENGINES_MAX = 1024
SOURCES_MAX = 1000
ADDRESSES_MAX = 256
PHASES_MAX = 100  # of a step line
TAGS_MAX = 100
OUTBOX_FRAMES_MAX = 100_000  # what an agent keeps for a server that is away: a driver log of a week, read from its
# start, is about 50,000 events; ten minutes of samples of 64 GPUs with full process tables are about 20 MiB
OUTBOX_BYTES_MAX = 32 * 2**20
STAND_IN = "job "  # is in every name that stands for a run until the run's own is told: "SESSION job NUMBER"
FIGURE_MAX = 1e15  # of tokens and their kin: sums and squares of it are still numbers
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
Text: TypeAlias = Annotated[str, Meta(max_length=TEXT_CHARS_MAX)]
Seq: TypeAlias = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Bytes: TypeAlias = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=1e12)]
UnixSeconds: TypeAlias = Annotated[float, Meta(ge=0, le=1e12)]
Ratio: TypeAlias = Annotated[float, Meta(ge=0, le=RATIO_MAX)]
Watts: TypeAlias = Annotated[float, Meta(ge=0, le=WATTS_MAX)]
Figure: TypeAlias = Annotated[float, Meta(ge=0, le=FIGURE_MAX)]
Language: TypeAlias = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

# The phases of a training step, by the names used everywhere, in the order verl 0.9.1's default trainer runs them.
PHASES = (
    "rollout",
    "reward",
    "old_log_prob",
    "ref",
    "values",
    "adv",
    "update_critic",
    "update_actor",
    "save_checkpoint",
    "update_weights",
    "validation",
    "idle",
)

# What a process of a training does.
ROLES = ("actor", "rollout", "critic", "reward", "ref", "driver")

# Markers of the switch from training to rollout, the most reliable first. A run prints several of them in one cycle:
# the first of this list that it prints is the one to count.
RESHARD_MARKERS = (
    "resume_kv_cache",  # verl 0.7-0.9, DEBUG: "After resume kv_cache", one a cycle
    "update_weights",  # verl 0.7-0.9, DEBUG: "After update_weights"
    "switch_to_rollout",  # verl 0.6-0.7, DEBUG: "After switch to rollout mode"
    "sync_weights",  # verl 0.2-0.5, DEBUG: "After sync model weights in sharding manager"
    "resharding_parameters",  # "re-sharding parameters for actor model": forks and custom code
    "state_dict_memory",  # verl 0.2-0.5, DEBUG: "After state_dict() in sharding manager memory"
    "wake_up_weights",  # vLLM, INFO: "It took 0.51 seconds to wake up tags ['weights'].", by every engine process
)


class _Value(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A part of a message."""


class _Message(Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="type"):
    """A whole frame; its "type" is the struct's tag."""


class _Body(Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="kind"):
    """What an event says; its "kind" is the struct's tag."""


# ---------------------------------------------------------------- static facts: sent once, in hello


class GpuFacts(_Value, frozen=True, kw_only=True):
    """What does not change while the agent runs. `gpu` is the label everyone uses: "3", or "3:1" for a MIG instance."""

    gpu: Name
    uuid: Name
    name: Name
    total_bytes: Bytes
    reserved_bytes: Bytes = 0  # kept by the driver (NVML memory v2); usable = total - reserved
    mig: bool = False
    pci_bus_id: Text | None = None
    power_limit_watts: Watts | None = None
    driver_version: Text | None = None


class HostFacts(_Value, frozen=True, kw_only=True):
    """The machine (or container) that the agent runs in. The limit is the one the kernel enforces."""

    memory_total_bytes: Bytes
    memory_limit_bytes: Bytes | None = None  # cgroup limit; None where there is none
    memory_limit_source: Text | None = None  # "cgroup v2" or "cgroup v1"
    swap_total_bytes: Bytes | None = None
    shm_total_bytes: Bytes | None = None
    disk_path: Text | None = None  # the folder that Ray spills to
    disk_total_bytes: Bytes | None = None
    cpu_count: Count | None = None
    hostname: Text | None = None
    kernel: Text | None = None
    addresses: Annotated[tuple[Name, ...], Meta(max_length=ADDRESSES_MAX)] = ()  # IP, without those of loopback


SourceState: TypeAlias = Literal["ok", "waiting", "missing", "failed", "hung"]


class SourceFacts(_Value, frozen=True, kw_only=True):
    """One thing that the agent reads, and, where it gives nothing, why and what a person can do."""

    name: Name  # "nvml", "nvidia-smi", "host", "simulated", "ray", "log driver.log"
    state: SourceState
    detail: Text | None = None


class NodeFacts(_Value, frozen=True, kw_only=True):
    gpus: Annotated[tuple[GpuFacts, ...], Meta(max_length=GPUS_MAX)] = ()
    host: HostFacts | None = None
    sources: Annotated[tuple[SourceFacts, ...], Meta(max_length=SOURCES_MAX)] = ()


# ---------------------------------------------------------------- agent -> server


class Hello(_Message, frozen=True, kw_only=True, tag="hello"):
    """First frame of a connection, and again whenever the facts change. It replaces the facts the server knew."""

    protocol: Count
    agent_version: Name
    node: Name
    session: Name  # random, new at each start of the agent: sequence numbers belong to it
    sent_at: UnixSeconds
    interval_seconds: Annotated[float, Meta(gt=0, le=3600)]
    facts: NodeFacts
    run: Name | None = None  # what --run said; events name their own run
    simulated: bool = False
    check: bool = False  # only asks whether it would be taken: it is answered, and nothing is kept of it


GpuStatus: TypeAlias = Literal["ok", "no_data", "lost"]


class GpuProcess(_Value, frozen=True, kw_only=True):
    pid: Count
    used_bytes: Bytes | None = None
    name: Text | None = None
    run: Name | None = None
    rank: Count | None = None  # among the processes that train together
    role: Text | None = None  # one of ROLES


class GpuSample(_Value, frozen=True, kw_only=True):
    """One GPU at one moment. `no_data`: it did not answer this time (a hung driver); `lost`: the driver gave it up."""

    gpu: Name
    status: GpuStatus = "ok"
    used_bytes: Bytes | None = None
    utilization_ratio: Ratio | None = None
    power_watts: Watts | None = None
    temperature_celsius: Annotated[float, Meta(ge=CELSIUS_MIN, le=CELSIUS_MAX)] | None = None
    ecc_uncorrected_total: Count | None = None
    # What looks between two samples saw, where it is more than both tell, and when; None: they saw no such.
    used_peak_bytes: Bytes | None = None
    used_peak_seconds_ago: Seconds | None = None
    # None: not read this time.
    processes: Annotated[tuple[GpuProcess, ...], Meta(max_length=PROCESSES_MAX)] | None = None


class HostProcess(_Value, frozen=True, kw_only=True):
    pid: Count
    name: Text
    rss_bytes: Bytes
    run: Name | None = None


class HostSample(_Value, frozen=True, kw_only=True):
    """Host memory at one moment. used = total - MemAvailable; the cgroup's own figure leaves reclaimable cache out."""

    memory_used_bytes: Bytes | None = None
    cgroup_used_bytes: Bytes | None = None
    swap_used_bytes: Bytes | None = None
    shm_used_bytes: Bytes | None = None
    disk_used_bytes: Bytes | None = None  # of the file system that Ray spills to
    memory_pressure_some_ratio: Ratio | None = None  # PSI avg10: share of time some task waited for memory
    memory_pressure_full_ratio: Ratio | None = None
    oom_kill_total: Count | None = None
    # What looks between two samples saw, as of a GPU.
    memory_used_peak_bytes: Bytes | None = None
    memory_used_peak_seconds_ago: Seconds | None = None
    cgroup_used_peak_bytes: Bytes | None = None
    cgroup_used_peak_seconds_ago: Seconds | None = None
    # By resident memory; None: not read this time.
    processes: Annotated[tuple[HostProcess, ...], Meta(max_length=HOST_PROCESSES_MAX)] | None = None


class TorchSample(_Value, frozen=True, kw_only=True):
    """torch's allocator in one process on one of its GPUs, as the probe within it read it (torch.cuda.memory_stats).

    Peaks are those since the program last reset them (the probe never does); totals count since the process started.
    """

    pid: Count
    gpu: Name | None = None  # None: the process could not be mapped to a GPU of this node
    run: Name | None = None
    rank: Count | None = None
    role: Text | None = None  # one of ROLES
    reserved_bytes: Bytes | None = None
    allocated_bytes: Bytes | None = None
    active_bytes: Bytes | None = None
    inactive_split_bytes: Bytes | None = None
    reserved_peak_bytes: Bytes | None = None
    allocated_peak_bytes: Bytes | None = None
    alloc_retries_total: Count | None = None  # the allocator flushed its cache to survive
    ooms_total: Count | None = None


class EngineSample(_Value, frozen=True, kw_only=True):
    """A rollout engine's own metrics, from its Prometheus endpoint."""

    engine: Text  # "vllm" or "sglang"
    address: Text  # host:port that was asked
    model: Text | None = None
    run: Name | None = None
    kv_used_ratio: Ratio | None = None
    requests_running: Count | None = None
    requests_waiting: Count | None = None
    preemptions_total: Count | None = None  # vLLM's preemptions, SGLang's retractions


class Sample(_Message, frozen=True, kw_only=True, tag="sample"):
    """What the sources of one node read at one moment."""

    seq: Seq
    at: UnixSeconds
    gpus: Annotated[tuple[GpuSample, ...], Meta(max_length=GPUS_MAX)] = ()
    host: HostSample | None = None
    torch: Annotated[tuple[TorchSample, ...], Meta(max_length=TORCH_MAX)] = ()
    engines: Annotated[tuple[EngineSample, ...], Meta(max_length=ENGINES_MAX)] = ()


class Origin(_Value, frozen=True, kw_only=True):
    """Where an event was read: the source's name and what its line said of the process that wrote it."""

    source: Name  # file name without its folder, "stdin", "nvml", "host", "simulated"
    line: Count | None = None
    pid: Count | None = None
    actor: Text | None = None
    ip: Text | None = None
    rank: Count | None = None


class Step(_Body, frozen=True, kw_only=True, tag="step"):
    """A finished training step, read from the trainer's step line. Keys that the line lacked are None.

    `phase_seconds` holds the trainer's own timings by oomwatch's phase names, in the order the phases ran.
    """

    step: Count
    step_seconds: Seconds | None = None
    rollout_seconds: Seconds | None = None
    reshard_seconds: Seconds | None = None
    phase_seconds: Annotated[dict[Name, Seconds], Meta(max_length=PHASES_MAX)] = {}
    torch_reserved_peak_bytes: Bytes | None = None  # since the process started: it can only rise
    torch_allocated_peak_bytes: Bytes | None = None
    host_used_bytes: Bytes | None = None  # of the whole host, as the trainer saw it
    response_length_mean_tokens: Figure | None = None
    response_length_max_tokens: Figure | None = None
    response_clip_ratio: Ratio | None = None
    rollout_ms_per_token: Figure | None = None
    tokens_total: Figure | None = None
    preemptions_mean: Figure | None = None  # a sequence was put back for want of KV cache so often
    validation_only: bool = False  # no training happened in it (verl's step:0 with validation figures)


class TorchMemory(_Body, frozen=True, kw_only=True, tag="torch_memory"):
    """torch's allocator at one point of the program. `at_point` is a head that the parser knows, else None.

    `ends_phase` is a phase that is over by then, where the point does not tell which one has begun.
    """

    reserved_bytes: Bytes | None = None
    allocated_bytes: Bytes | None = None
    device_used_bytes: Bytes | None = None
    device_total_bytes: Bytes | None = None
    device_free_bytes: Bytes | None = None  # where a program prints that alone (SGLang's "avail mem")
    at_point: Text | None = None
    phase: Text | None = None  # one of PHASES
    ends_phase: Text | None = None  # one of PHASES
    engine_asleep: bool | None = None  # True at a point at which a colocated rollout engine sleeps
    step: Count | None = None
    gpu: Name | None = None  # set by the agent where the process could be mapped to a GPU


class Reshard(_Body, frozen=True, kw_only=True, tag="reshard"):
    """A marker of the switch from training to rollout. Which markers make one cycle is judged by the core."""

    marker: Text
    seconds: Seconds | None = None


class EngineSleep(_Body, frozen=True, kw_only=True, tag="engine_sleep"):
    """A rollout engine gave its memory back. `still_used_bytes` is the residue."""

    freed_bytes: Bytes | None = None
    still_used_bytes: Bytes | None = None
    seconds: Seconds | None = None
    gpu: Name | None = None


class EngineWake(_Body, frozen=True, kw_only=True, tag="engine_wake"):
    seconds: Seconds | None = None
    tags: Annotated[tuple[Name, ...], Meta(max_length=TAGS_MAX)] = ()
    gpu: Name | None = None


class EngineMemory(_Body, frozen=True, kw_only=True, tag="engine_memory"):
    """What vLLM or SGLang says of its KV cache. A negative budget is what vLLM prints before it refuses to start."""

    kv_available_bytes: Annotated[int, Meta(ge=-COUNT_MAX, le=COUNT_MAX)] | None = None
    kv_used_ratio: Ratio | None = None
    gpu: Name | None = None


class DeviceOom(_Body, frozen=True, kw_only=True, tag="device_oom"):
    """A GPU ran out of memory, as a log said it. Clauses that the message lacked are None."""

    error: Text  # the exception's class, or the family of the message
    tried_bytes: Bytes | None = None
    total_bytes: Bytes | None = None
    free_bytes: Bytes | None = None
    process_used_bytes: Bytes | None = None
    allocated_bytes: Bytes | None = None
    reserved_unallocated_bytes: Bytes | None = None
    local_index: Count | None = None  # the process' own numbering: Ray workers all say GPU 0
    gpu: Name | None = None
    phase: Text | None = None


class HostOom(_Body, frozen=True, kw_only=True, tag="host_oom"):
    """Something was killed for want of host memory, or a kill counter rose."""

    reporter: Text  # "ray", "kernel", "slurm", "cgroup", "kubernetes", "exit code"
    process: Text | None = None
    pid: Count | None = None
    used_bytes: Bytes | None = None
    limit_bytes: Bytes | None = None
    kills: Count = 1


class DiskFull(_Body, frozen=True, kw_only=True, tag="disk_full"):
    reporter: Text
    used_ratio: Ratio | None = None


class GpuLost(_Body, frozen=True, kw_only=True, tag="gpu_lost"):
    """The driver gave a GPU up (Xid 79 and its kin)."""

    xid: Count | None = None
    pci_bus_id: Text | None = None
    gpu: Name | None = None


class ShmSmall(_Body, frozen=True, kw_only=True, tag="shm_small"):
    """The shared memory of the host (/dev/shm) is too small for what a program wants to put there."""

    reporter: Text
    available_bytes: Bytes | None = None
    wanted_bytes: Bytes | None = None


class NcclError(_Body, frozen=True, kw_only=True, tag="nccl_error"):
    """A collective failed or timed out: often what the other ranks see when one of them ran out of memory."""

    error: Text  # "timeout", "remote error", "system error", "unhandled CUDA error"
    gpu: Name | None = None


ConfigValue: TypeAlias = (
    bool | Annotated[int, Meta(ge=-COUNT_MAX, le=COUNT_MAX)] | float | Annotated[str, Meta(max_length=200)]
)


class Config(_Body, frozen=True, kw_only=True, tag="config"):
    """The run's configuration as far as memory depends on it: allowed keys only, flat, without paths and secrets."""

    values: Annotated[dict[Name, ConfigValue], Meta(max_length=1000)]
    framework: Text | None = None  # "verl"
    version: Text | None = None
    # Sizes of the models by the keys of their config.json, and "name" where that is a public one. Empty: not known; a
    # critic of which nothing is told has the actor's.
    model: Annotated[dict[Name, ConfigValue], Meta(max_length=100)] = {}
    critic_model: Annotated[dict[Name, ConfigValue], Meta(max_length=100)] = {}


class Probe(_Body, frozen=True, kw_only=True, tag="probe"):
    """A process with the probe inside introduced itself."""

    door: Text  # how the probe came in: "verl.plugins", "vllm.general_plugins", "external_lib", "sitecustomize"
    torch_version: Text | None = None
    world_size: Count | None = None
    rank: Count | None = None
    role: Text | None = None
    gpus: Annotated[tuple[Name, ...], Meta(max_length=GPUS_MAX)] = ()  # labels of the GPUs that it uses


class RunNamed(_Body, frozen=True, kw_only=True, tag="run_named"):
    """The run of this event is the one that `provisional` stood for: what bears either name is of one run.

    The node that runs a job's driver reads the name that people gave; the others know only the job that they work for.
    """

    provisional: Name


class ActDone(_Body, frozen=True, kw_only=True, tag="act_done"):
    """An act that the server asked for is over, or is refused: `ok` says which, `detail` says it in words."""

    id: Name  # of the request
    act: Name
    ok: bool
    detail: Text | None = None
    path: Text | None = None  # a file on the node, or the folder of several
    seconds: Seconds | None = None


EventBody: TypeAlias = (
    Step
    | TorchMemory
    | Reshard
    | EngineSleep
    | EngineWake
    | EngineMemory
    | DeviceOom
    | HostOom
    | DiskFull
    | ShmSmall
    | GpuLost
    | NcclError
    | Config
    | Probe
    | RunNamed
    | ActDone
)


class Event(_Message, frozen=True, kw_only=True, tag="event"):
    """Something that a log, a counter or a probe said.

    `backlog` marks what was already there when the agent first looked: it informs baselines and charts, and is news to
    nobody.
    """

    seq: Seq
    at: UnixSeconds
    body: EventBody
    run: Name | None = None
    origin: Origin | None = None
    backlog: bool = False


class Bye(_Message, frozen=True, kw_only=True, tag="bye"):
    """The agent stops on purpose: its silence from here on is not an alarm."""

    seq: Seq
    at: UnixSeconds
    reason: Text = "stopped"


AgentMessage: TypeAlias = Hello | Sample | Event | Bye


# ---------------------------------------------------------------- server -> agent


class RefusedReason(str, enum.Enum):
    """Why a server turns an agent away: the closed list. `retry` in Refused says whether trying again makes sense."""

    PROTOCOL = "protocol"  # no common version
    TOKEN = "token"  # noqa: S105 - the name of a reason
    NODE_TAKEN = "node_taken"  # another live agent uses this node name
    MALFORMED = "malformed"  # the first frame was no hello, or frames could not be decoded
    OVERLOADED = "overloaded"
    SHUTTING_DOWN = "shutting_down"


class Welcome(_Message, frozen=True, kw_only=True, tag="welcome"):
    """Answer to the first hello of a connection: send everything of this session after `resume_after_seq`."""

    protocol: int
    server_version: str
    sent_at: UnixSeconds
    resume_after_seq: Seq = 0


class Refused(_Message, frozen=True, kw_only=True, tag="refused"):
    reason: RefusedReason
    detail: Text
    retry: bool = False


class Ack(_Message, frozen=True, kw_only=True, tag="ack"):
    """Everything of this session up to `seq` is stored: the agent may forget it."""

    seq: Seq


# What an agent can be asked to do before a process dies. It does only what its own --allow-acts permits.
ActName: TypeAlias = Literal["memory_snapshot", "stacks", "hook"]
ACTS: tuple[ActName, ...] = get_args(ActName)
ACTS_MAX = 16  # in one request


class ActRequest(_Message, frozen=True, kw_only=True, tag="act"):
    """A critical alert fired whose rule says `before_it_dies`: do this on your node, and tell of each act (act_done).

    Which processes are meant the agent sees for itself: those on `gpu`, or of the alert's run where there is none.
    """

    id: Name  # the same alert is asked for once only
    alert: "Alert"
    acts: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=ACTS_MAX)]
    gpu: Name | None = None
    step_seconds: Seconds | None = None  # what a step of the run usually takes


ServerMessage: TypeAlias = Welcome | Refused | Ack | ActRequest


# ---------------------------------------------------------------- alerts

Severity: TypeAlias = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
AlertState: TypeAlias = Literal["pending", "firing", "resolved"]
# Why an alert ended. Each has its words in the catalogue: `reason.` and the words with _ between them.
TransitionReason: TypeAlias = Literal[
    "recovered", "rule removed", "run ended", "run restarted", "no longer listed", "no longer watched", "node removed"
]
# What a transition brings: another state; another severity of an alert that stays open; afterwards, what became of it
# or what was done because of it; or, while it is open, that it is muted or is no more, or in somebody's care.
TransitionChange: TypeAlias = Literal["state", "severity", "outcome", "acts", "muted", "acknowledged"]
TRANSITION_REASONS: tuple[TransitionReason, ...] = get_args(TransitionReason)
Fact: TypeAlias = float | int | str

# What fills the memory, by the names used everywhere. Each has its words in the catalogue (`cause.NAME`) and its
# remedies in advice/.
CAUSES = (
    "rollout_kv_budget",  # the engine's share of the card leaves too little for the trainer
    "log_prob_micro_batch",
    "entropy_logits",  # tokens x vocabulary, several copies at once
    "actor_update",
    "critic_update",
    "reward_model",
    "weight_sync",  # update_weights and wake-up: residue, trainer, weights and buffers at one moment
    "sleep_residue",  # what the engine keeps after it slept grows
    "fragmentation",
    "leak",  # tensors kept from step to step on the device
    "length_growth",
    "longest_batch",  # the longest allowed batch will not fit, though none was that long yet
    "imbalance",  # one rank has more than its peers
    "other_process",  # of somebody else, on the same card
    "checkpoint_spike",
    "host_offload",  # parameters and optimizer states on the host
    "engine_host_copies",  # vLLM's sleep level 1 keeps the weights on the host
    "driver_process",  # the TaskRunner holds batches
    "host_leak",  # a worker process grows on the host
    "object_store",  # Ray's plasma in /dev/shm
    "disk_spill",
    "kv_pressure",  # slow, not dying
)


class Evidence(_Value, frozen=True, kw_only=True):
    """One observation that speaks for a cause. `key` is its sentence in the catalogue (`evidence.KEY`)."""

    key: Name
    facts: dict[str, Fact] = {}
    texts: dict[str, str] = {}  # by language; put in once the core has judged


class Cause(_Value, frozen=True, kw_only=True):
    """What is probably behind an alert. Scores of one alert's causes add up to 1 at most."""

    cause: Name  # one of CAUSES
    score: Ratio
    phase: Text | None = None  # one of PHASES
    evidence: tuple[Evidence, ...] = ()
    texts: dict[str, str] = {}  # its name, by language


class Remedy(_Value, frozen=True, kw_only=True):
    """One change of the run's configuration, or an action where there is no key for it.

    `override` is the line to copy ("actor_rollout_ref.rollout.gpu_memory_utilization=0.5").
    """

    remedy: Name  # its name in advice/
    cause: Name
    key: Text | None = None
    value_from: "ConfigValue | None" = None
    value_to: "ConfigValue | None" = None
    override: Text | None = None
    frees_bytes: Bytes | None = None  # estimate
    needed_bytes: Bytes | None = None
    texts: dict[str, str] = {}  # what to do, by language
    price: dict[str, str] = {}  # what it costs, by language
    source: Text | None = None
    limits_damage: bool = False  # it prevents nothing, and less is lost: those stand last


AlertVerdict: TypeAlias = Literal["avoided", "happened", "false"]


class Outcome(_Value, frozen=True, kw_only=True):
    """What became of a warning. The lead is from the alert to the failure, where one happened."""

    verdict: AlertVerdict
    at: UnixSeconds
    lead_seconds: Seconds | None = None
    lead_steps: Count | None = None


class Act(_Value, frozen=True, kw_only=True):
    """Something that was done on a node because of an alert, before the process dies, and where its result lies."""

    act: Name  # one of ACTS
    at: UnixSeconds
    node: Name
    ok: bool
    detail: Text | None = None
    path: Text | None = None  # on the node
    seconds: Seconds | None = None


MuteKind: TypeAlias = Literal["silence", "maintenance", "quiet_hours", "inhibited"]


class Mute(_Value, frozen=True, kw_only=True):
    """Why nobody is sent an alert for now. `by`: the id of a silence or of a graver alert, or a window's name."""

    kind: MuteKind
    by: Name
    until: UnixSeconds | None = None  # None: for as long as the graver alert fires
    note: Text | None = None  # what the person said who made it; the graver alert's name


class Acknowledgement(_Value, frozen=True, kw_only=True):
    """Somebody takes care of an alert: it is neither repeated nor passed on to others, but its changes are told."""

    by: Name
    at: UnixSeconds
    note: Text | None = None


MatchOp: TypeAlias = Literal["=", "!=", "=~", "!~"]


class Matcher(_Value, frozen=True, kw_only=True):
    """One condition on an alert's labels: alert, severity, node, gpu, run. A label that it lacks counts as empty."""

    label: Name
    op: MatchOp = "="
    value: Text = ""


class Silence(_Value, frozen=True, kw_only=True):
    """A person's word that alerts which meet all of these matchers are to be sent to nobody for a time."""

    id: Name
    matchers: Annotated[tuple[Matcher, ...], Meta(min_length=1, max_length=20)]
    starts_at: UnixSeconds
    ends_at: UnixSeconds
    created_by: Name
    created_at: UnixSeconds
    note: Text | None = None


class AlertText(_Value, frozen=True, kw_only=True):
    """What an alert says in one language: a sentence, an explanation, and what to do, most useful first."""

    summary: str
    description: str
    advice: tuple[str, ...] = ()


class Transition(_Value, frozen=True, kw_only=True):
    """One change of one alert's state: what the engine says, what is stored first, and what every reader is sent.

    `facts` are the numbers (and names) behind the judgement, by the names that alerts.yaml uses in its texts.
    """

    id: Name  # the same in every transition of one alert: a digest of alert, severity, subject and started_at
    alert: Name
    severity: Severity
    state: AlertState
    at: UnixSeconds  # when the state changed, not when it was noticed or stored
    started_at: UnixSeconds  # when the condition was first met
    labels: dict[str, str]  # node, gpu, run: those that the subject has
    value: float | None = None
    limit: float | None = None
    unit: str | None = None  # "ratio", "bytes", "seconds", "per_minute", "count"
    facts: dict[str, Fact] = {}
    reason: TransitionReason | None = None  # why it was resolved
    texts: dict[str, AlertText] = {}  # by language; put in once the core has judged, kept so that history stays as said
    simulated: bool = False
    change: TransitionChange = "state"
    lowered_from: Severity | None = None  # it says tight but steady: less severe than its rule
    quiet: bool = False  # it has been lowered since it began: nobody was told of it, and nobody is of its end
    causes: tuple[Cause, ...] = ()  # most likely first
    remedies: tuple[Remedy, ...] = ()  # most useful first
    outcome: Outcome | None = None
    acts: tuple[Act, ...] = ()
    muted: tuple[Mute, ...] = ()  # as of this change; empty: people are sent word of it
    acknowledged: Acknowledgement | None = None


class Alert(_Value, frozen=True, kw_only=True):
    """An alert as a person sees it: its latest transition, in words."""

    id: Name
    alert: Name
    severity: Severity
    state: AlertState
    labels: dict[str, str]
    started_at: UnixSeconds
    texts: dict[str, AlertText]  # by language
    fired_at: UnixSeconds | None = None
    told_at: UnixSeconds | None = None  # when it was first to be sent to people: it fired, neither muted nor quiet
    ended_at: UnixSeconds | None = None
    value: float | None = None
    limit: float | None = None
    unit: str | None = None
    facts: dict[str, Fact] = {}
    stale: bool = False  # no data of its subject for a while: it stays open, and says so
    simulated: bool = False
    reason: TransitionReason | None = None
    lowered_from: Severity | None = None
    causes: tuple[Cause, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    outcome: Outcome | None = None
    acts: tuple[Act, ...] = ()
    muted: tuple[Mute, ...] = ()  # as of this change; empty: people are sent word of it
    acknowledged: Acknowledgement | None = None


# ---------------------------------------------------------------- server -> browser (/ws/live)

NodeState: TypeAlias = Literal["live", "silent", "stopped"]


class NodeTick(_Value, frozen=True, kw_only=True, array_like=True):
    """The latest reading of one node, lean: columns in the order of the node's facts. None: no data for that GPU.

    On the wire a list of these fields in this order, for their names would be a third of what a thousand GPUs take each
    second; later versions add fields at the end.

    `status` is left out while every GPU answers, `torch_reserved_mib` while no process with a probe is on any of them.
    """

    node: Name
    at: UnixSeconds
    used_mib: tuple[int | None, ...] = ()
    utilization_percent: tuple[int | None, ...] = ()
    status: tuple[GpuStatus, ...] | None = None
    torch_reserved_mib: tuple[int | None, ...] | None = None  # of all processes on the GPU; None: no probe there
    host_used_mib: int | None = None
    cgroup_used_mib: int | None = None


class CardsAlike(_Value, frozen=True, kw_only=True, array_like=True):
    """GPUs of one node that follow one another and are alike: of their facts what every view shows.

    On the wire a list of these fields in this order: told of each GPU they are two thirds of a large fleet's snapshot.
    """

    gpus: tuple[Name, ...]
    name: Name
    total_bytes: Bytes
    reserved_bytes: Bytes = 0
    mig: bool = False


class Node(_Value, frozen=True, kw_only=True):
    """A node as a person sees it. `silent`: no frame for a while; `stopped`: its agent said bye."""

    node: Name
    state: NodeState
    last_seen_at: UnixSeconds  # by the server's clock
    agent_version: str
    interval_seconds: float
    facts: NodeFacts
    cards: tuple[CardsAlike, ...] = ()  # to those who did not ask for this node, in place of facts.gpus
    run: str | None = None  # the one that its agent was told, or the only one here
    gpu_runs: tuple[str | None, ...] = ()  # which run is on each GPU, in the order of the facts; empty: not known
    simulated: bool = False
    skew_seconds: float = 0.0  # agent's clock minus the server's, as corrected for
    reading: NodeTick | None = None  # the latest; None: there was none yet
    sample: Sample | None = None  # to who asks for this node: the latest, with the last processes, probes and engines
    together: Sample | None = None  # likewise: the last one that listed processes, all of it read at one moment


class StepPoint(_Value, frozen=True, kw_only=True):
    """One finished step of a run, with the time it was read."""

    at: UnixSeconds
    step: Step


PhaseKnownBy: TypeAlias = Literal["mark", "step line"]


class PhaseSpan(_Value, frozen=True, kw_only=True):
    """A time during which a run was in one phase. `mark`: exact; `step line`: cut afterwards, good to 1.5 s.

    A span that has only begun has no end.
    """

    start_at: UnixSeconds
    end_at: UnixSeconds | None = None
    phase: Text  # one of PHASES
    step: Count | None = None
    known_by: PhaseKnownBy


class Coverage(_Value, frozen=True, kw_only=True):
    """What a run tells of one signal: where it comes from, or why it is missing and how to switch it on.

    `problem` is a key of the catalogue (`coverage.problem.KEY`), filled with `step` where it is said since when.
    """

    signal: Text
    source: Text | None = None
    last_seen_at: UnixSeconds | None = None
    count: Count = 0
    problem: Text | None = None
    step: Count | None = None
    texts: dict[str, str] = {}  # the problem in words, by language


class Run(_Value, frozen=True, kw_only=True):
    """A training run as a person sees it. `reshard_cycles_total` counts from the server's first sight of the run.

    `phases` are those of the last ten minutes, or of the last two steps where those are longer.
    """

    run: Name
    nodes: tuple[str, ...]
    first_seen_at: UnixSeconds
    last_seen_at: UnixSeconds
    steps: tuple[StepPoint, ...] = ()
    reshard_cycles_total: Count = 0
    reshard_marker: str | None = None  # what the cycles are counted by; None: no marker was seen yet
    phases: tuple[PhaseSpan, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    config: dict[str, ConfigValue] = {}
    simulated: bool = False


class Rule(_Value, frozen=True, kw_only=True):
    """A rule as the page lists it. `when` holds its conditions, of which one must hold, with their parameters."""

    alert: Name
    severity: Severity
    scope: str
    for_seconds: float
    keep_firing_for_seconds: float
    keep_firing_steps: Count = 0  # of the subject's run, where those take longer
    when: tuple[msgspec.Raw, ...] = ()
    texts: dict[str, AlertText] = {}


ChannelHealth: TypeAlias = Literal["ok", "failing", "failed"]


class ChannelState(_Value, frozen=True, kw_only=True):
    """How a notification channel fares. `failing`: it is tried again; `failed`: it refuses, and has to be mended.

    Totals count from the server's start.
    """

    name: Name
    kind: Name
    health: ChannelHealth = "ok"
    waiting: Count = 0  # messages
    delivered_total: Count = 0  # messages
    failed_total: Count = 0  # messages given up for good
    retries_total: Count = 0  # attempts that are to be repeated
    dropped_total: Count = 0  # alerts for which there was no room
    last_success_at: UnixSeconds | None = None
    last_error_at: UnixSeconds | None = None
    last_error: Text | None = None


DeliveryState: TypeAlias = Literal["waiting", "delivered", "failed"]


class Delivery(_Value, frozen=True, kw_only=True):
    """One message to one channel that told of an alert."""

    id: Name  # the key by which the receiver knows it again
    channel: Name
    kind: Name  # one of notify.notice.NOTICE_KINDS
    state: DeliveryState
    made_at: UnixSeconds
    attempts: Count = 0
    done_at: UnixSeconds | None = None
    error: Text | None = None  # of the last attempt that failed


class ServerInfo(_Value, frozen=True, kw_only=True):
    version: str
    started_at: UnixSeconds
    rules_error: str | None = None  # the rule file has mistakes: the rules in force are older than the file


class Snapshot(_Message, frozen=True, kw_only=True, tag="snapshot"):
    """First frame to a browser: all there is, in full of the one node that it shows. What follows are changes to it."""

    at: UnixSeconds
    server: ServerInfo
    nodes: tuple[Node, ...] = ()
    runs: tuple[Run, ...] = ()
    alerts: tuple[Alert, ...] = ()  # open ones, and those that ended lately
    rules: tuple[Rule, ...] = ()
    silences: tuple[Silence, ...] = ()  # in force or yet to come, by their end
    channels: tuple[ChannelState, ...] = ()  # in the order of alerts.yaml


class Tick(_Message, frozen=True, kw_only=True, tag="tick"):
    """Once a second: the nodes that were heard since the last tick."""

    at: UnixSeconds
    nodes: tuple[NodeTick, ...] = ()


class NodeChanged(_Message, frozen=True, kw_only=True, tag="node"):
    """Facts or state of a node changed, or it is new."""

    node: Node


class RunChanged(_Message, frozen=True, kw_only=True, tag="run"):
    """A run is new or changed. `run.steps` holds only the new steps: append them.

    `run.phases` holds what may have changed, the last two steps: it replaces what was told from the first one's start
    on, for a step line tells anew what marks had told of its step. Where it is empty, what was told stays.
    """

    run: Run


class AlertChanged(_Message, frozen=True, kw_only=True, tag="alert"):
    alert: Alert


class TorchPoint(_Message, frozen=True, kw_only=True, tag="torch"):
    """A reading of torch's allocator, for the charts of whoever is looking at that GPU or run."""

    at: UnixSeconds
    node: Name
    memory: TorchMemory
    run: str | None = None


class RulesChanged(_Message, frozen=True, kw_only=True, tag="rules"):
    server: ServerInfo
    rules: tuple[Rule, ...] = ()


class SilencesChanged(_Message, frozen=True, kw_only=True, tag="silences"):
    """All silences that are in force or yet to come, in place of those told before."""

    silences: tuple[Silence, ...] = ()


class ChannelsChanged(_Message, frozen=True, kw_only=True, tag="channels"):
    """All notification channels, in place of those told before."""

    channels: tuple[ChannelState, ...] = ()


class Forgotten(_Message, frozen=True, kw_only=True, tag="forgotten"):
    """Nodes and runs that are no more: nothing was heard of them for a day, or a person said that a node is gone."""

    nodes: tuple[Name, ...] = ()
    runs: tuple[Name, ...] = ()


LiveMessage: TypeAlias = (
    Snapshot
    | Tick
    | NodeChanged
    | RunChanged
    | AlertChanged
    | TorchPoint
    | RulesChanged
    | SilencesChanged
    | ChannelsChanged
    | Forgotten
)


# ---------------------------------------------------------------- coding


class Unknown(_Value, frozen=True, kw_only=True):
    """A frame (or an event body) of a type this version does not know: to be counted, acknowledged and skipped."""

    type: str
    seq: int | None = None


class MalformedMessageError(ValueError):
    """A frame that is no message of this protocol. The text says which field is wrong, and how."""


class _Peek(Struct):
    """Just enough of a frame to tell an unknown type from a malformed one."""

    type: str
    seq: int | None = None
    body: dict[str, msgspec.Raw] | None = None


# The last one: of JSON within JSON, a hundred thousand times.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_encoder = msgspec.json.Encoder()
_agent_decoder: msgspec.json.Decoder[AgentMessage] = msgspec.json.Decoder(AgentMessage)
_server_decoder: msgspec.json.Decoder[ServerMessage] = msgspec.json.Decoder(ServerMessage)
_peek_decoder = msgspec.json.Decoder(_Peek)


def _tags(union: object) -> frozenset[str]:
    members: tuple[type[Struct], ...] = getattr(union, "__args__")  # noqa: B009 - a union's members have no typed name
    return frozenset(str(member.__struct_config__.tag) for member in members)


AGENT_TYPES = _tags(AgentMessage)
SERVER_TYPES = _tags(ServerMessage)
LIVE_TYPES = _tags(LiveMessage)
EVENT_KINDS = _tags(EventBody)


def encode(message: Struct) -> bytes:
    """The JSON text of a message, UTF-8."""
    return _encoder.encode(message)


def decode_agent(frame: str | bytes) -> AgentMessage | Unknown:
    """A frame from an agent. Raises MalformedMessageError; an unknown type or event kind gives Unknown."""
    try:
        return _agent_decoder.decode(frame)
    except _UNREADABLE as error:
        return _unknown_or_raise(frame, AGENT_TYPES, error)


def decode_server(frame: str | bytes) -> ServerMessage | Unknown:
    """A frame from the server to an agent. Raises MalformedMessageError; an unknown type gives Unknown."""
    try:
        return _server_decoder.decode(frame)
    except _UNREADABLE as error:
        return _unknown_or_raise(frame, SERVER_TYPES, error)


def _unknown_or_raise(frame: str | bytes, known: frozenset[str], error: Exception) -> Unknown:
    try:
        peek = _peek_decoder.decode(frame)
    except _UNREADABLE:
        raise MalformedMessageError(str(error)) from error
    if peek.type not in known:
        return Unknown(type=peek.type, seq=peek.seq)
    kind = _event_kind(peek)
    if kind is not None and kind not in EVENT_KINDS:
        return Unknown(type=f"event/{kind}", seq=peek.seq)
    raise MalformedMessageError(str(error)) from error


def _event_kind(peek: _Peek) -> str | None:
    if peek.type != "event" or peek.body is None or "kind" not in peek.body:
        return None
    try:
        return msgspec.json.decode(peek.body["kind"], type=str)
    except _UNREADABLE:
        return None
