"""When the loss of a GPU is news: what turns the driver's answers and Xids into events. PURE."""

from collections.abc import Iterable, Mapping

from oomwatch import wire
from oomwatch_agent.source import Found

# The Xids (numbers of NVIDIA's nverror.h and Xid catalogue) after which a GPU cannot be worked with any more:
#    79  GPU has fallen off the bus
#   119  timeout of a call to the GPU's system processor (GSP): the driver lost touch with it
#   120  error of the GSP
# Every other Xid is a matter of one program (13, 31, 43), or of health that its ECC counter shows (48, 63, 94, 95).
LOSS_XIDS = frozenset({79, 119, 120})

_SAME_LOSS_SECONDS = 60.0  # the Xid, its repetitions and the driver's own "lost" are one loss


class Losses:
    """Remembers what was said of each GPU. `source` is the name that events carry."""

    def __init__(self, source: str) -> None:
        self._origin = wire.Origin(source=source)
        self._status: dict[str, wire.GpuStatus] = {}
        self._told_at: dict[str, float] = {}

    def know(self, labels: Iterable[str]) -> None:
        """GPUs that answered when they were found: a first reading that says "lost" is news."""
        for label in labels:
            self._status.setdefault(label, "ok")

    def news(
        self,
        samples: Iterable[wire.GpuSample],
        xids: Iterable[tuple[str, int]],
        bus_ids: Mapping[str, str | None],
        now: float,
    ) -> tuple[Found, ...]:
        """Events of this reading: `xids` are pairs of label and Xid, `now` any clock's seconds that only go up."""
        lost: dict[str, int | None] = {label: xid for label, xid in xids if xid in LOSS_XIDS}
        for sample in samples:
            if self._turned_lost(sample):
                lost.setdefault(sample.gpu, None)
        return tuple(
            self._found(label, xid, bus_ids.get(label)) for label, xid in lost.items() if self._is_new(label, now)
        )

    def _turned_lost(self, sample: wire.GpuSample) -> bool:
        """Lost now and not before. Lost at first sight is old news; "no data" says nothing either way."""
        before = self._status.get(sample.gpu)
        if sample.status != "no_data":
            self._status[sample.gpu] = sample.status
        return sample.status == "lost" and before == "ok"

    def _is_new(self, label: str, now: float) -> bool:
        told_at, self._told_at[label] = self._told_at.get(label), now
        return told_at is None or now - told_at >= _SAME_LOSS_SECONDS

    def _found(self, label: str, xid: int | None, bus_id: str | None) -> Found:
        return Found(body=wire.GpuLost(xid=xid, pci_bus_id=bus_id, gpu=label), origin=self._origin)
