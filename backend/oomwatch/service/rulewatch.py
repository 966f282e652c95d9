"""Watches alerts.yaml: good rules are put in force within seconds, mistakes are reported and change nothing."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from oomwatch.rulefile import RuleFile, RuleFileError, read_rules

POLL_SECONDS = 2.0

logger = logging.getLogger(__name__)

Stamp = tuple[int, int] | None


class RuleWatch:
    """`apply` takes good rules over and raises ValueError for what it cannot use; `report` is told what is wrong,
    or None; `count_failure` is called for a defect of our own, which ends nothing."""

    def __init__(
        self,
        path: Path,
        apply: Callable[[RuleFile], None],
        report: Callable[[str | None], None],
        count_failure: Callable[[], None],
        *,
        seen: Stamp,
        in_force: RuleFile | None = None,
    ) -> None:
        self._path = path
        self._apply = apply
        self._report = report
        self._count_failure = count_failure
        self._seen = seen
        self._in_force = in_force
        self._asked = asyncio.Event()
        self._turn = asyncio.Lock()  # a file that was read must not be put in force over what was taken meanwhile

    def reload_soon(self) -> None:
        """Read the file even if it looks the same (SIGHUP)."""
        self._asked.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await self.check(force=await self._was_asked())

    async def _was_asked(self) -> bool:
        """Wait for the next moment to look; True where someone asked."""
        try:
            await asyncio.wait_for(self._asked.wait(), POLL_SECONDS)
        except asyncio.TimeoutError:
            return False
        self._asked.clear()
        return True

    async def check(self, *, force: bool = False) -> None:
        """Look once. A file that is away for a moment, as editors do when they save, is looked for again."""
        async with self._turn:
            await self._check(force=force)

    async def _check(self, *, force: bool) -> None:
        now = stamp(self._path)
        if now == self._seen and not force:
            return
        self._seen = now
        try:
            rules = await asyncio.to_thread(read_rules, self._path)
            self._apply(rules)
        except RuleFileError as error:
            self._refuse(str(error))
        except ValueError as error:
            self._refuse(f"{self._path}: {error}")
        except Exception as error:
            self._count_failure()
            logger.exception("reading %s failed by a defect of oomwatch; the file is watched on", self._path)
            self._refuse(f"{self._path}: reading it failed by a defect of oomwatch ({error!r}); see the server's log")
        else:
            self._took(rules)

    async def take(self, rules: RuleFile, write: Callable[[], Stamp]) -> None:
        """Put rules in force at once that `write` puts into the file, in a thread; it gives the new file's stamp().

        Raises ValueError for what cannot be used, and what `write` raises; then the rules are those of before.
        """
        async with self._turn:
            await self._take(rules, write)

    async def _take(self, rules: RuleFile, write: Callable[[], Stamp]) -> None:
        before = self._in_force
        self._apply(rules)
        try:
            self._seen = await asyncio.to_thread(write)
        except BaseException:
            if before is not None:
                self._apply(before)
            raise
        self._took(rules)

    def _took(self, rules: RuleFile) -> None:
        self._in_force = rules
        self._report(None)
        logger.info("%s: %d rules in force", self._path, len(rules.rules.rules))

    def _refuse(self, problem: str) -> None:
        logger.error("the rules in force stay as they are, since the file has mistakes:\n%s", problem)
        self._report(problem)


def stamp(path: Path) -> Stamp:
    """What tells one state of a file from another without reading it; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
