"""The numbers that a rule can watch, by the names that alerts.yaml uses: of a GPU, of a node, of a run.

To add one: write its function and its line in SIGNALS of the file of its subject.
"""

from oomwatch.core.signals import of_gpu, of_node, of_run
from oomwatch.core.signals.signal import Signal

SIGNALS: dict[str, Signal] = {**of_gpu.SIGNALS, **of_node.SIGNALS, **of_run.SIGNALS}


def signal(name: str) -> Signal:
    """A signal by name. Raises ValueError that lists the known ones."""
    try:
        return SIGNALS[name]
    except KeyError:
        raise ValueError(f'unknown metric "{name}"; known are {", ".join(SIGNALS)}') from None
