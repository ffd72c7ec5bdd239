"""Memory that the machine has, and keeps, while something is measured on it.

A virtual machine may give memory that lies free back to its host, by the megabyte and within seconds. Whoever uses it
next waits for the host, page after page, and who that is is a matter of luck. Measured on such a machine: 5 us a page
instead of 0.4, and at worst 3 CPU seconds for what the broker has to write of a million records, where 0.5 are usual.
"""

import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

__all__ = ["memory_at_hand"]

MOST = 6 * 2**30
EVERY = 2**20


@contextmanager
def memory_at_hand(most: int = MOST) -> Iterator[None]:
    """While the block runs, so much memory, or a quarter of what is free, is there to be used and is not given away.

    All of it is touched, and freed but for one page in each megabyte: so no free piece is large enough for the host.
    """
    if sys.platform != "linux":
        yield
        return
    size = min(most, psutil.virtual_memory().available // 4) // EVERY * EVERY
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        memory[:: mmap.PAGESIZE] = bytes(size // mmap.PAGESIZE)
        for at in range(0, size, EVERY):
            memory.madvise(mmap.MADV_DONTNEED, at + mmap.PAGESIZE, EVERY - mmap.PAGESIZE)
        yield
