"""torch's core by hand: whether the memory's history is being recorded."""

recording = False


def _cuda_isHistoryEnabled() -> bool:  # noqa: N802 - torch's name
    return recording
