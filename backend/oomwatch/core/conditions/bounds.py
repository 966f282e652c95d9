"""Bounds that conditions share: what no person can have meant is a mistake, and not a rule that never fires."""

SHARE_MAX = 100.0  # of what it was: ten thousand percent. A size or a time that was written for a share is more
SIZE_BYTES_MIN = 2**20  # less is a size whose unit was forgotten


def check_share(name: str, share: float) -> None:
    """Raises ValueError for what is no share of an earlier value."""
    if not 0 <= share <= SHARE_MAX:
        raise ValueError(f"{name}: {share:g} is no share; write for example 50% or 0.5")


def check_size(name: str, size_bytes: float) -> None:
    """Raises ValueError for what is no size, unless it is 0."""
    if size_bytes and size_bytes < SIZE_BYTES_MIN:
        raise ValueError(f"{name}: {size_bytes:g} is no size; write for example 5GiB")
