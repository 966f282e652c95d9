"""What the routes of the rules work with."""

from typing import NamedTuple

from oomwatch.web.ruledesk import RuleDesk
from oomwatch.web.tryouts import Tryouts


class RuleParts(NamedTuple):
    desk: RuleDesk
    tryouts: Tryouts
