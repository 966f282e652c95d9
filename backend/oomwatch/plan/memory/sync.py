"""The transfer of new weights from the trainer to the engine."""

from oomwatch.plan.memory.part import Part, amount
from oomwatch.plan.shape import ModelShape

BUCKET = "rollout.checkpoint_engine.update_weights_bucket_megabytes, one being sent and one being received"
LARGEST = "weight-sync buffers hold 2 to 3 times the largest tensor"
_BUFFERS = 2


def buckets(shape: ModelShape, bucket_bytes: int) -> Part:
    """The buffers that weights travel in: of the told size, but at least that of the largest tensor."""
    largest = 2 * shape.embedding_parameters
    each = max(bucket_bytes, largest)
    formula = f"{_BUFFERS} x {amount(each)}B"
    source = BUCKET if bucket_bytes >= largest else LARGEST
    return Part(name="buckets", bytes=_BUFFERS * each, formula=formula, source=source, spread=0.4)
