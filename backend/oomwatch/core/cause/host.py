"""Causes on the host: which kind of process holds its memory, and which kind grows. And the disk that Ray spills to."""

from oomwatch import wire
from oomwatch.core.cause.finding import NONE, Finding, evidence, share
from oomwatch.core.facts import Facts
from oomwatch.core.hostdisks import SHM_PATH
from oomwatch.core.parts import Part, kind_of_name, named

GROWTH_RATIO_MIN = 0.01  # of the limit
SURE, LIKELY, OPEN = 0.9, 0.6, 0.4


def driver_process(facts: Facts) -> Finding:
    return _grown_or_large(facts, "driver")


def host_leak(facts: Facts) -> Finding:
    """A worker grows. One that is merely large holds what is offloaded to it."""
    worker = named(facts.host_parts).get("worker")
    return _grown_or_large(facts, "worker") if worker is not None and _grows(facts, worker) else NONE


def engine_host_copies(facts: Facts) -> Finding:
    """vLLM's sleep level 1 keeps the weights on the host; verl uses it with LoRA adapters and layered_summon."""
    level_1 = bool(facts.settings.lora_rank) or bool(facts.settings.layered_summon)
    finding = _grown_or_large(facts, "engine")
    if finding.score == 0:
        return NONE
    seen = (evidence("sleep_level_1"),) if level_1 else ()
    return Finding(min(SURE, finding.score * (1.5 if level_1 else 1.0)), (*finding.evidence, *seen))


def host_offload(facts: Facts) -> Finding:
    """Parameters and optimizer states lie on the host, and fill it without growing."""
    offload = (facts.settings.param_offload, facts.settings.optimizer_offload)
    if not any(offload) or not facts.host_used_bytes:
        return NONE
    worker = named(facts.host_parts).get("worker")
    seen = [evidence("offload_on")]
    if worker is not None:
        seen.append(_holds(facts, worker))
    still = 1 - _growth_share(facts)
    held = share(worker.used_bytes, facts.host_used_bytes) if worker is not None else 0.5
    return Finding((0.3 + LIKELY * held) * still, tuple(seen))


def object_store(facts: Facts) -> Finding:
    """Ray's store lies in /dev/shm, which is host memory."""
    if facts.watched == "shm_small" or facts.verdict.get("path") == SHM_PATH:
        return Finding(SURE, _shm(facts))
    store = named(facts.host_parts).get("object_store")
    if store is None or not facts.host_limit_bytes:
        return NONE
    if _grows(facts, store):
        return Finding(SURE * share(store.rise_bytes, _rises(facts)), _shm(facts))
    return Finding(LIKELY * share(store.used_bytes, facts.host_limit_bytes) * (1 - _growth_share(facts)), _shm(facts))


def disk_spill(facts: Facts) -> Finding:
    if facts.topic != "disk" or facts.watched == "shm_small" or facts.verdict.get("path") == SHM_PATH:
        return NONE
    seen = evidence("disk", disk_used_bytes=facts.disk_used_bytes, disk_total_bytes=facts.disk_total_bytes)
    return Finding(SURE, (seen,) if len(seen.facts) == 2 else ())  # noqa: PLR2004 - both figures or none


def _grown_or_large(facts: Facts, kind: str) -> Finding:
    """By its share of what grew; where nothing grows, by its share of what is in use."""
    part = named(facts.host_parts).get(kind)
    told = kind_of_name(str(facts.verdict.get("process", ""))) == kind and "process" in facts.verdict
    if part is None or not facts.host_limit_bytes:
        return Finding(OPEN, (evidence("process_named", process=str(facts.verdict["process"])),)) if told else NONE
    bonus = 0.1 if told else 0.0
    if _grows(facts, part):
        grown = evidence("part_rises", process=part.largest, rise_bytes=part.rise_bytes, used_bytes=part.used_bytes)
        return Finding(min(1.0, SURE * share(part.rise_bytes, _rises(facts)) + bonus), (grown,))
    held = share(part.used_bytes, facts.host_used_bytes or facts.host_limit_bytes)
    return Finding((LIKELY * held + bonus) * (1 - _growth_share(facts)), (_holds(facts, part),))


def _grows(facts: Facts, part: Part) -> bool:
    return part.rise_bytes > GROWTH_RATIO_MIN * (facts.host_limit_bytes or float("inf"))


def _rises(facts: Facts) -> float:
    return sum(part.rise_bytes for part in facts.host_parts)


def _growth_share(facts: Facts) -> float:
    """How much of the story growth is: 1 where some process grew by a tenth of the limit."""
    return share(_rises(facts), 0.1 * (facts.host_limit_bytes or float("inf")))


def _holds(facts: Facts, part: Part) -> wire.Evidence:
    return evidence("part_holds", process=part.largest, used_bytes=part.used_bytes, limit_bytes=facts.host_limit_bytes)


def _shm(facts: Facts) -> tuple[wire.Evidence, ...]:
    if facts.shm_used_bytes is None or facts.shm_total_bytes is None:
        return ()
    return (evidence("shm", shm_used_bytes=facts.shm_used_bytes, shm_total_bytes=facts.shm_total_bytes),)
