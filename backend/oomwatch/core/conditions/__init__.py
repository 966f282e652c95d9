"""The kinds of condition that a rule's `when` can have: one file a kind, one name in this union.

A condition is a frozen struct whose fields are its parameters in alerts.yaml. It offers `scopes` (the kinds of subject
it can judge), `hears` (what news can make it true: it is judged on no other, unless an alert of it is open),
`fact_names` (what its texts may mention), `predicts` (which memory is full if it is right, or None: its warnings are
held against that afterwards, core/outcome.py), `topic` (what its alerts are about, and so which causes may stand behind
them, core/cause/; None for none), `over_when_run` (what of its run ends an alert of it at once, core/lives.py) and
`judge(fleet, subject, now) -> Verdict`, which is asked by way of core/asking.py, as are `is_so`, the same in one word,
and `stands`, whether it has to be asked again (kind.py).
"""

from typing import TypeAlias

from oomwatch.core.conditions.disk_forecast import DiskForecast
from oomwatch.core.conditions.event import EventSeen
from oomwatch.core.conditions.forecast import ForecastOf
from oomwatch.core.conditions.fragmentation import Fragmentation
from oomwatch.core.conditions.host_forecast import HostForecast
from oomwatch.core.conditions.imbalance import Imbalance
from oomwatch.core.conditions.jump import Jump
from oomwatch.core.conditions.kv_pressure import KvPressure
from oomwatch.core.conditions.lengths import Lengths
from oomwatch.core.conditions.plan import PlanExceeded
from oomwatch.core.conditions.rate import Rate
from oomwatch.core.conditions.regression import Regression
from oomwatch.core.conditions.residue import Residue
from oomwatch.core.conditions.retries import Retries
from oomwatch.core.conditions.rising import Rising
from oomwatch.core.conditions.threshold import Threshold
from oomwatch.core.conditions.worst_case import WorstCase

Condition: TypeAlias = (
    Threshold
    | Rising
    | Jump
    | Rate
    | EventSeen
    | ForecastOf
    | HostForecast
    | DiskForecast
    | KvPressure
    | WorstCase
    | Residue
    | Retries
    | Fragmentation
    | Imbalance
    | Lengths
    | Regression
    | PlanExceeded
)
