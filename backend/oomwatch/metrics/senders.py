"""How the senders of these metrics to other stores fare. Nothing where there are none."""

from collections.abc import Iterator

from oomwatch.metrics.family import Family, Reading, Room, Rows, View

SAMPLES = Family("oomwatch_export_samples", "counter",
                 "Samples for another store: sent, refused for good, or dropped since it did not answer.",
                 ("to", "outcome"), ("sender", "export outcome"))  # fmt: skip
WAITING = Family("oomwatch_export_batches_waiting", "gauge", "Batches of samples that wait for the store.",
                 ("to",), ("sender",))  # fmt: skip
FAILED = Family("oomwatch_export_failed", "gauge", "1 while the store takes nothing.", ("to",), ("sender",))


def _read(view: View) -> Iterator[Reading]:
    yield SAMPLES.of(_outcomes(view))
    yield WAITING.of(((sender.name,), sender.waiting) for sender in view.senders)
    yield FAILED.of(((sender.name,), float(sender.problem is not None)) for sender in view.senders)


def _outcomes(view: View) -> Rows:
    for sender in view.senders:
        yield (sender.name, "sent"), sender.sent_total
        yield (sender.name, "refused"), sender.refused_total
        yield (sender.name, "dropped"), sender.dropped_total


ROOM = Room((SAMPLES, WAITING, FAILED), _read)
