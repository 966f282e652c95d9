"""The GPUs, as the agent would read them."""

import tempfile
from collections.abc import Iterator

import msgspec

from oomwatch import wire
from oomwatch.commands.installation.finding import Family, Finding
from oomwatch_agent.assemble import sources
from oomwatch_agent.cards import makers
from oomwatch_agent.settings import AgentSettings
from oomwatch_agent.source import Source, SourceMissingError

FAMILY = Family("GPUs")
GIB = 2**30
REMEDY = "install the driver with its management library (libnvidia-ml.so.1), and hand it to containers (--gpus all)"
ONLY_MEMORY = "on a machine without GPUs all is well; only its memory and its logs are watched"


def checks(settings: AgentSettings) -> Iterator[Finding]:
    """Every way that there is to read cards here, and the host's memory."""
    if settings.simulate not in ("off", "auto"):
        yield FAMILY.warning(
            "simulation", f"nothing of this machine is watched ({settings.simulate})", "drop --simulate"
        )
        return
    with tempfile.TemporaryDirectory() as nothing:
        bare = msgspec.structs.replace(
            settings,
            simulate="off",
            engine_metrics=("off",),
            probe="off",
            ray="off",
            slurm="off",
            log=(),
            acts_dir=nothing,
        )
        for source in sources(bare):
            yield from _of(source)


def _of(source: Source) -> Iterator[Finding]:
    try:
        facts = source.open()
    except SourceMissingError as error:
        if makers.any_is_here():
            yield FAMILY.wrong(source.name, str(error), REMEDY)
        else:
            yield FAMILY.warning(source.name, str(error), f"{REMEDY}; {ONLY_MEMORY}")
    else:
        yield from _seen(source.name, facts)
    finally:
        source.close()


def _seen(name: str, facts: wire.NodeFacts) -> Iterator[Finding]:
    for missing in facts.sources:
        if missing.state == "missing":
            yield FAMILY.warning(
                missing.name, missing.detail or "is missing", "the next best way is used; mend this one"
            )
    if facts.host is not None:
        limit = facts.host.memory_limit_bytes
        bound = f", {limit / GIB:.1f} GiB allowed by {facts.host.memory_limit_source}" if limit else ""
        yield FAMILY.ok("host memory", f"{facts.host.memory_total_bytes / GIB:.1f} GiB{bound}")
        return
    drivers = sorted({gpu.driver_version for gpu in facts.gpus if gpu.driver_version})
    if not facts.gpus:
        yield FAMILY.wrong(name, "it answers, and knows of no GPU", "nvidia-smi -L: is a card there, and given to us?")
        return
    kinds = ", ".join(dict.fromkeys(gpu.name for gpu in facts.gpus))
    yield FAMILY.ok(name, f"{len(facts.gpus)} x {kinds}" + (f", driver {', '.join(drivers)}" if drivers else ""))
