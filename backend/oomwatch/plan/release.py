"""Which release of verl a version is of. One that is not told or newer than all that are known counts as the newest."""

from typing import TypeAlias

Release: TypeAlias = tuple[int, int]
OLDEST: Release = (0, 4)
NEWEST: Release = (0, 9)


def release_of(version: str | None) -> Release:
    """("0.7.1") -> (0, 7). What is no version at all counts as not told."""
    parts = (version or "").split(".")[:2]
    if len(parts) < 2 or not all(part.isdigit() for part in parts):  # noqa: PLR2004 - major and minor
        return NEWEST
    return max(OLDEST, min(NEWEST, (int(parts[0]), int(parts[1]))))
