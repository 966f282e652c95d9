"""What vLLM and SGLang say of their memory: sleep, wake-up and the KV cache.

Back-pressure is no event: vLLM's preemption warnings and SGLang's "Retract requests" and "Decode out of memory
happened" are what an engine that works at its limit prints.
"""

import re

from oomwatch import wire
from oomwatch_agent.logs.pattern import Bodies, Pattern
from oomwatch_agent.logs.units import GIB, NUMBER, SIZE_UNIT, byte_count, number_of

_FREED = re.compile(
    rf"Sleep mode freed (?P<freed>{NUMBER}) (?P<freed_unit>{SIZE_UNIT}) memory, "
    rf"(?P<still>{NUMBER}) (?P<still_unit>{SIZE_UNIT}) memory is still in use\."
)
_ASLEEP = re.compile(rf"It took (?P<seconds>{NUMBER}) seconds to fall asleep\.")
_AWAKE = re.compile(rf"It took (?P<seconds>{NUMBER}) seconds to wake up(?: tags (?P<tags>[^.]{{0,100}}))?\.")
_TAG = re.compile(r"[a-z_]{1,32}")
_KV_AVAILABLE = re.compile(rf"Available KV cache memory: (?P<size>{NUMBER}) ?(?P<unit>{SIZE_UNIT})")
_KV_USAGE = re.compile(
    rf"(?:Engine \d+: )?Avg prompt throughput: .{{0,300}}?GPU KV cache usage: (?P<percent>{NUMBER})%"
)
_KV_POOL = re.compile(rf"KV Cache is allocated\. .{{0,120}}?K size: (?P<k>{NUMBER}) ?GB, V size: (?P<v>{NUMBER}) ?GB")
_TOKEN_USAGE = re.compile(rf"(?:Decode|Prefill) batch\b.{{0,300}}?\btoken usage: (?P<ratio>{NUMBER})")
_AVAILABLE = re.compile(rf"[A-Z][^=]{{0,200}}?(?:=[^=]{{0,80}}){{0,6}}\bavail mem=(?P<free>{NUMBER}) GB\.?")
_LONGEST_SECONDS = 1e6  # eleven days: no engine takes longer to wake


def _seconds(raw: str) -> float | None:
    value = number_of(raw)
    return value if value is not None and 0 <= value <= _LONGEST_SECONDS else None


def _read_freed(match: re.Match[str]) -> Bodies:
    freed = byte_count(match["freed"], match["freed_unit"])
    still = byte_count(match["still"], match["still_unit"])
    return (wire.EngineSleep(freed_bytes=freed, still_used_bytes=still),) if still is not None else ()


def _read_asleep(match: re.Match[str]) -> Bodies:
    return (wire.EngineSleep(seconds=_seconds(match["seconds"])),)


def _read_awake(match: re.Match[str]) -> Bodies:
    tags = tuple(tag for tag in _TAG.findall(match["tags"] or "") if tag in ("weights", "kv_cache"))
    seconds = _seconds(match["seconds"])
    wake = wire.EngineWake(seconds=seconds, tags=tags)
    # Without tags everything wakes, the weights too.
    weights_wake = "weights" in tags or not tags
    return (wake, wire.Reshard(marker="wake_up_weights", seconds=seconds)) if weights_wake else (wake,)


def _read_kv_available(match: re.Match[str]) -> Bodies:
    """May be negative: vLLM prints it so before it refuses to start."""
    size = byte_count(match["size"].lstrip("-"), match["unit"])
    if size is None:
        return ()
    return (wire.EngineMemory(kv_available_bytes=-size if match["size"].startswith("-") else size),)


def _read_kv_pool(match: re.Match[str]) -> Bodies:
    keys, values = number_of(match["k"]), number_of(match["v"])
    size = byte_count((keys or 0) + (values or 0))
    return (wire.EngineMemory(kv_available_bytes=size),) if size is not None and size < 2**20 * GIB else ()


def _read_ratio(share: float | None) -> Bodies:
    # More than full is no share; a little above is how an engine counts what it is just giving back.
    return (wire.EngineMemory(kv_used_ratio=share),) if share is not None and 0 <= share <= 2 else ()  # noqa: PLR2004


def _read_kv_usage(match: re.Match[str]) -> Bodies:
    percent = number_of(match["percent"])
    return _read_ratio(None if percent is None else percent / 100)


def _read_token_usage(match: re.Match[str]) -> Bodies:
    return _read_ratio(number_of(match["ratio"]))


def _read_available(match: re.Match[str]) -> Bodies:
    """What is free of the whole card, as SGLang sees it around loading, its pools and its graphs."""
    free = byte_count(match["free"])
    return (wire.TorchMemory(device_free_bytes=free),) if free is not None else ()


PATTERNS = (
    Pattern(
        name="vLLM sleep",
        gate="Sleep mode freed",
        regex=_FREED,
        read=_read_freed,
        example=(
            "INFO 09-15 14:42:36 [gpu_worker.py:115] Sleep mode freed 51.57 GiB memory, 67.88 GiB memory is "
            "still in use."
        ),
        expect=("EngineSleep",),
        seen_in="huggingface/trl issue 4086",
    ),
    Pattern(
        name="vLLM asleep",
        gate="It took",
        regex=_ASLEEP,
        read=_read_asleep,
        example="INFO 09-15 14:42:36 [executor_base.py:188] It took 1.503160 seconds to fall asleep.",
        expect=("EngineSleep",),
        seen_in="huggingface/trl issue 4086",
    ),
    Pattern(
        name="vLLM wake-up",
        gate="It took",
        regex=_AWAKE,
        read=_read_awake,
        example="INFO 01-22 09:42:00 [executor_base.py:227] It took 0.510000 seconds to wake up tags ['weights'].",
        expect=("EngineWake", "Reshard"),
    ),
    Pattern(
        name="vLLM KV budget",
        gate="KV cache memory",
        regex=_KV_AVAILABLE,
        read=_read_kv_available,
        example="(EngineCore_DP0 pid=9) INFO 01-22 09:42:00 [gpu_worker.py:298] Available KV cache memory: 64.27 GiB",
        expect=("EngineMemory",),
    ),
    Pattern(
        name="vLLM KV usage",
        gate="KV cache usage",
        regex=_KV_USAGE,
        read=_read_kv_usage,
        example=(
            "INFO 01-22 09:42:00 [loggers.py:118] Engine 000: Avg prompt throughput: 8.2 tokens/s, Avg generation "
            "throughput: 91.0 tokens/s, Running: 9 reqs, Waiting: 0 reqs, GPU KV cache usage: 91.2%, Prefix cache hit "
            "rate: 3.1%"
        ),
        expect=("EngineMemory",),
    ),
    Pattern(
        name="SGLang KV pool",
        gate="KV Cache is allocated",
        regex=_KV_POOL,
        read=_read_kv_pool,
        example="[2026-05-01 10:00:00 TP0] KV Cache is allocated. #tokens: 408960, K size: 10.92 GB, V size: 10.92 GB",
        expect=("EngineMemory",),
    ),
    Pattern(
        name="SGLang token usage",
        gate="#token",
        regex=_TOKEN_USAGE,
        read=_read_token_usage,
        example=(
            "[2026-05-01 10:00:00 TP0] Decode batch. #running-req: 61, #token: 38000, token usage: 0.94, "
            "gen throughput (token/s): 912.1, #queue-req: 0"
        ),
        expect=("EngineMemory",),
    ),
    Pattern(
        name="SGLang available memory",
        gate="avail mem=",
        regex=_AVAILABLE,
        read=_read_available,
        example="[2026-05-01 10:00:00 TP0] Memory pool end. avail mem=74.01 GB",
        expect=("TorchMemory",),
    ),
)
