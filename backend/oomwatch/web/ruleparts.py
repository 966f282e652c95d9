"""What the routes of the rules work with."""

from typing import NamedTuple

from oomwatch.service.rulewatch import RuleWatch
from oomwatch.web.ruledesk import RuleDesk
from oomwatch.web.tryouts import Tryouts


class RuleParts(NamedTuple):
    watch: RuleWatch
    desk: RuleDesk
    tryouts: Tryouts
