"""All checks, in the order in which verl would come upon what they find. One file per kind of rule, one line here."""

from collections.abc import Callable, Iterator

from oomwatch.plan.checks.groups import engines_fit
from oomwatch.plan.checks.micro import mini_batch_divides
from oomwatch.plan.problem import Problem
from oomwatch.plan.reader import Reader

Check = Callable[[Reader], Iterator[Problem]]
CHECKS: tuple[Check, ...] = (mini_batch_divides, engines_fit)
