"""`SlurmSource`: which jobs of Slurm this node has, as its prolog and epilog say (deploy/slurm).

A job is a file named by its number, with lines of `key=value`: user, partition, nodes, gpus. Which process is of which
job is told by the processes' own environment (who/processes.py); this says whose the node is.
"""

from collections.abc import Iterator
from pathlib import Path

from oomwatch import wire
from oomwatch_agent.kernel_files import names_in, read_bytes
from oomwatch_agent.source import Reading, SourceMissingError

JOBS_MAX = 100
VALUE_CHARS_MAX = 100
_WORDS = (("gpus", "GPUs"), ("nodes", "nodes"), ("partition", "partition"))


class SlurmSource:
    """`folder`: what prolog and epilog write to."""

    name = "slurm"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._facts: wire.NodeFacts | None = None

    def open(self) -> wire.NodeFacts:
        """The jobs that are here. Raises SourceMissingError where there is no such folder."""
        if not self._folder.is_dir():
            raise SourceMissingError(f"there is no folder {self._folder}; the agent's service makes it (deploy/slurm)")
        self._facts = self._facts_now()
        return self._facts

    def read(self, *, slow: bool) -> Reading:
        """Facts, where a job has begun or ended since the last look; a look is one of ten reads."""
        if not slow:
            return Reading()
        facts = self._facts_now()
        changed, self._facts = facts != self._facts, facts
        return Reading(facts=facts if changed else None)

    def close(self) -> None:
        """It holds nothing."""

    def _facts_now(self) -> wire.NodeFacts:
        jobs = "; ".join(self._jobs()) or "no job is here"
        return wire.NodeFacts(
            sources=(wire.SourceFacts(name=self.name, state="ok", detail=jobs[: wire.TEXT_CHARS_MAX]),)
        )

    def _jobs(self) -> Iterator[str]:
        numbers = sorted((name for name in names_in(str(self._folder)) if name.isascii() and name.isdigit()), key=int)
        for number in numbers[:JOBS_MAX]:
            yield _in_words(number, dict(_pairs(read_bytes(f"{self._folder}/{number}"))))


def _pairs(content: bytes) -> Iterator[tuple[str, str]]:
    for line in content.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition("=")
        if value.strip():
            yield key, "".join(one for one in value.strip() if one.isprintable())[:VALUE_CHARS_MAX]


def _in_words(number: str, told: dict[str, str]) -> str:
    """ "job 4711 of lin, GPUs 0,1, nodes gpu-[01-04], partition train"; without what is not known."""
    of = f" of {told['user']}" if "user" in told else ""
    more = (f", {word} {told[key]}" for key, word in _WORDS if key in told)
    return f"job {number[:20]}{of}{''.join(more)}"
