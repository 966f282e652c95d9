"""Has done what the CPU budget asks for: fewer looks, fewer slow reads, fewer reads of what is not memory itself."""

import logging
import resource
import time
from collections.abc import Callable

from oomwatch_agent.budget import Budget
from oomwatch_agent.looker import Paces
from oomwatch_agent.purse import Purse
from oomwatch_agent.sampler import Sampler

logger = logging.getLogger(__name__)


def cpu_seconds() -> float:
    """What this process has used of the CPU, with the programs that it had run and waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def budget_ratio(percent: float, interval_seconds: float) -> float:
    """The share of a core: it is meant for a sample a second; who asks for more of them asks for what they cost."""
    return percent / 100 * max(1.0, 1.0 / interval_seconds)


class Sparing:
    """Between the budget and those who spend. Asked before and told after each sample."""

    def __init__(
        self, budget: Budget, paces: Paces, sampler: Sampler, purse: Purse, *, cpu: Callable[[], float] = cpu_seconds
    ) -> None:
        self._budget = budget
        self._paces = paces
        self._sampler = sampler
        self._purse = purse
        self._cpu = cpu
        self._slow_reads = 0

    def may_be_slow(self) -> bool:
        """Whether the slow read that is due is to be one."""
        self._slow_reads += 1
        return (self._slow_reads - 1) % self._budget.spared.slow_reads == 0

    def sampled(self, now: float) -> None:
        """A sample was taken. Says in the log when more or less is spared than before."""
        if not self._budget.is_due(now) or not self._budget.see(self._cpu() - self._purse.given_seconds, now):
            return
        spared, why = self._budget.spared, self._budget.sentence()
        self._paces.ease = spared.looks
        self._sampler.spare(spared.other_sources, why)
        if why is not None:
            logger.warning("%s", why)
        else:
            logger.info("within the CPU budget again: nothing is spared")
