"""What to change: from an alert's causes to the settings of its run, with the value to set and what it costs.

The catalogue is data (remedies.yaml); which keys verl has, the package `plan` knows. `advise` puts the best three
remedies on a transition; pure.
"""

from oomwatch.advice.choose import advise, remedies

__all__ = ["advise", "remedies"]
