"""What Ray's jobs are called: by the run that their driver names, and until that is read, by a name that stands for it.

Pure. A session's folder has the same name on every node of a Ray cluster, and a job the same number: so the stand-in is
the same wherever a worker of the job runs, also on nodes that never see its driver.
"""

from typing import NamedTuple

from oomwatch import wire
from oomwatch_agent.source import Found, KnownBy

TELL_AGAIN_SECONDS = 6 * 3600.0  # a server that starts anew looks a day back


class Job(NamedTuple):
    """A job of one Ray session."""

    session: str  # the name of its folder
    number: str  # "01000000"

    @property
    def stand_in(self) -> str:
        """What its run is called while nobody has told its name."""
        return f"{self.session} {wire.STAND_IN}{self.number}"[: wire.NAME_CHARS_MAX]


class JobNames:
    """Learns the names of jobs; `news` tells them to those who know only the stand-in, and again every few hours."""

    def __init__(self) -> None:
        self._names: dict[Job, str] = {}
        self._told_at: dict[Job, float] = {}
        self._jobs: dict[str, dict[str, None]] = {}  # session -> its jobs

    def see(self, job: Job) -> None:
        """A worker of this job has a file."""
        self._jobs.setdefault(job.session, {}).setdefault(job.number)

    def learn(self, job: Job, run: str) -> None:
        """Its driver, or a person, has named it."""
        if self._names.get(job) != run:
            self._names[job] = run
            self._told_at.pop(job, None)

    def news(self, now: float) -> list[Found]:
        """An event for every name that was learnt since the last call, or told long ago. `now`: seconds."""
        due = [job for job in self._names if now - self._told_at.get(job, float("-inf")) >= TELL_AGAIN_SECONDS]
        self._told_at.update(dict.fromkeys(due, now))
        return [_named(job, self._names[job]) for job in due]

    def name(self, session: str, number: str | None) -> tuple[str | None, KnownBy]:
        """The name of a job, and how it is known. `number` None: of what concerns the session's only job, if any."""
        jobs = self._jobs.get(session, {})
        if number is None and len(jobs) != 1:
            return None, KnownBy.RAY_JOB
        job = Job(session, number if number is not None else next(iter(jobs)))
        run = self._names.get(job)
        return (run, KnownBy.LOG) if run is not None else (job.stand_in, KnownBy.RAY_JOB)


def _named(job: Job, run: str) -> Found:
    return Found(body=wire.RunNamed(provisional=job.stand_in), origin=wire.Origin(source="ray"), run=run)
