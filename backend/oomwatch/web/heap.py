"""All threads of the server take their memory from one heap."""

import contextlib
import ctypes

_ARENA_MAX = -8  # M_ARENA_MAX of glibc's mallopt(3)


def share_one_heap() -> None:
    """Call this before threads begin.

    glibc gives each thread a heap of its own, and what one frees is no other's: four MiB here, where one thread runs at
    a time. Other libraries know no such setting.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
