"""What the start took of memory and does not need any more goes back to the kernel."""

import contextlib
import ctypes


def give_back() -> None:
    """Call this once the sources are open.

    To load a program leaves holes in the C library's heap: half a MiB where Python finds its modules compiled, and ten
    where it has to compile them, as in an image that is read-only. glibc closes them when it is asked to; others have
    no such function.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0))
