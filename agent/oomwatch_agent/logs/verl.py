"""verl's own lines: memory, steps, markers of the switch to rollout; and what people print themselves.

Memory lines are `{head}, memory allocated (GB): a, memory reserved (GB): r[, device memory used/total (GB): u/t]`, with
long floats and no device part until April 2025. "GB" is 1024**3 in all of them.
"""

import re

import msgspec
from msgspec import structs

from oomwatch import wire
from oomwatch_agent.logs.pattern import Bodies, Pattern
from oomwatch_agent.logs.phases import Head, head_of
from oomwatch_agent.logs.steps import step_from
from oomwatch_agent.logs.units import NUMBER, SIZE_UNIT, byte_count, count_of

_MEMORY = re.compile(
    rf"(?P<head>.{{0,300}}?)[,:]? ?memory allocated \(GB\): (?P<allocated>{NUMBER}), "
    rf"memory reserved \(GB\): (?P<reserved>{NUMBER})"
    rf"(?:, device memory used/total \(GB\): (?P<used>{NUMBER})/(?P<total>{NUMBER}))?"
)
_DEVICE_ONLY = re.compile(
    rf"(?P<head>.{{0,300}}? in sharding manager(?: memory)?): (?P<used>{NUMBER}) GB / (?P<total>{NUMBER}) GB\.?"
)


def _amount(name: str) -> str:
    return rf"(?P<{name}>{NUMBER}) ?(?P<{name}_unit>{SIZE_UNIT})"


_OWN_PRINT = re.compile(
    r"(?:\[[^\]]{1,80}\] *)?(?:(?:global[ _]?)?(?:step|iter(?:ation)?)[ :=#]*(?P<step>\d{1,15})\b[ :,|\-]*)?"
    rf"(?:(?:GPU |CUDA |torch )?(?:memory )?allocated[:=]? *{_amount('allocated')}[ ,|;/]*)?"
    rf"(?:GPU |CUDA |torch )?(?:memory )?reserved[:=]? *{_amount('reserved')}\b",
    re.IGNORECASE,
)
_DEEPSPEED = re.compile(
    rf"(?:.{{0,200}} )?MA {_amount('allocated')}\s+Max_MA \S+ \S+\s+CA {_amount('reserved')}\s+Max_CA "
)
_STEP = re.compile(r"step:(?P<step>\d{1,16}) - (?P<metrics>[\w./@()\- ]+?:.*)$")
_FILE_LOGGER = re.compile(r'\{ ?"step": ?\d+, ?"data": ?\{.*\}\}$')
# What prints it is custom code, so its logger's form is anybody's guess: a bare level is passed over too.
_RESHARDING = re.compile(
    r"(?:\[[^\]]{1,40}\] ?)?(?:(?:DEBUG|INFO|WARNING)[ :|-]{1,4}(?:\d\d-\d\d \d\d:\d\d:\d\d )?)?"
    r"re-sharding parameters for [\w ]{1,40}\bmodel\b",
    re.IGNORECASE,
)


def _read_memory(match: re.Match[str]) -> Bodies:
    reserved = byte_count(match["reserved"])
    if reserved is None:
        return ()
    memory = wire.TorchMemory(
        reserved_bytes=reserved,
        allocated_bytes=byte_count(match["allocated"]),
        device_used_bytes=byte_count(match["used"]),
        device_total_bytes=byte_count(match["total"]),
    )
    return _at_head(memory, head_of(match["head"]))


def _read_device_only(match: re.Match[str]) -> Bodies:
    """EasyR1 prints the device's memory, and not torch's."""
    used, total = byte_count(match["used"]), byte_count(match["total"])
    if used is None or total is None:
        return ()
    return _at_head(wire.TorchMemory(device_used_bytes=used, device_total_bytes=total), head_of(match["head"]))


def _at_head(memory: wire.TorchMemory, head: Head | None) -> Bodies:
    """The reading with what the head of its line says of the moment."""
    if head is None:
        return (memory,)
    told = structs.replace(
        memory,
        at_point=head.at_point,
        phase=head.phase,
        ends_phase=head.ends,
        engine_asleep=head.asleep or None,
    )
    return (told, wire.Reshard(marker=head.marker)) if head.marker else (told,)


def _read_amounts(match: re.Match[str]) -> Bodies:
    fields = match.groupdict()
    reserved = byte_count(fields["reserved"], fields["reserved_unit"])
    if reserved is None:
        return ()
    allocated = fields["allocated"] and byte_count(fields["allocated"], fields["allocated_unit"])
    return (
        wire.TorchMemory(
            reserved_bytes=reserved,
            allocated_bytes=allocated if isinstance(allocated, int) else None,
            step=count_of(fields.get("step")),
        ),
    )


def _read_step(match: re.Match[str]) -> Bodies:
    pairs = (part.rpartition(":") for part in match["metrics"].split(" - "))
    step = step_from(int(match["step"]), {key.strip(): value.strip() for key, _, value in pairs if key})
    return (step,) if step else ()


class _FileLoggerLine(msgspec.Struct):
    step: int
    data: dict[str, object]


def _read_file_logger(match: re.Match[str]) -> Bodies:
    try:
        # msgspec reads strict JSON; Python's json writes nan and inf bare, and they mean "no value" here.
        line = msgspec.json.decode(re.sub(r": ?(?:NaN|-?Infinity)\b", ": null", match[0]), type=_FileLoggerLine)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return ()
    step = step_from(line.step, line.data)
    return (step,) if step else ()


def _read_resharding(_: re.Match[str]) -> Bodies:
    return (wire.Reshard(marker="resharding_parameters"),)


PATTERNS = (
    Pattern(
        name="step line",
        gate="step:",
        regex=_STEP,
        read=_read_step,
        example="\x1b[36m(TaskRunner pid=2)\x1b[0m step:12 - actor/lr:1e-06 - timing_s/gen:31.4 - timing_s/step:95.2",
        expect=("Step",),
    ),
    Pattern(
        name="file logger",
        gate='"step":',
        regex=_FILE_LOGGER,
        read=_read_file_logger,
        example='{"step": 3, "data": {"timing_s/gen": 30.5, "actor/grad_norm": NaN}}',
        expect=("Step",),
    ),
    Pattern(
        name="memory line",
        gate="memory",
        regex=_MEMORY,
        read=_read_memory,
        example=(
            "DEBUG:verl.workers.engine_workers:After resume kv_cache, memory allocated (GB): 2.01, "
            "memory reserved (GB): 4.01, device memory used/total (GB): 60.41/79.15"
        ),
        expect=("TorchMemory", "Reshard"),
    ),
    Pattern(
        name="EasyR1 memory line",
        gate="GB / ",
        regex=_DEVICE_ONLY,
        read=_read_device_only,
        example="After sync model weights in sharding manager: 58.32 GB / 79.19 GB.",
        expect=("TorchMemory", "Reshard"),
    ),
    Pattern(
        name="own print",
        gate="eserved",
        regex=_OWN_PRINT,
        read=_read_amounts,
        example="[after update] Allocated: 41.20 GB, Reserved: 55.01 GB",
        expect=("TorchMemory",),
    ),
    Pattern(
        name="DeepSpeed memory",
        gate="Max_CA",
        regex=_DEEPSPEED,
        read=_read_amounts,
        example=(
            "[2023-11-17 11:03:46,601] [INFO] [utils.py:803:see_memory_usage] MA 26.38 GB         Max_MA 26.38 GB"
            "         CA 26.71 GB         Max_CA 27 GB "
        ),
        expect=("TorchMemory",),
        seen_in="deepspeedai/DeepSpeed issue 4700",
    ),
    Pattern(
        name="re-sharding",
        gate="re-sharding",
        regex=_RESHARDING,
        read=_read_resharding,
        example="INFO:trainer:re-sharding parameters for actor model",
        expect=("Reshard",),
    ),
)
