"""What a process does once at a time: pretending the device and recording a step change PyTorch for
the whole process, and not for a thread alone."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from stowage.errors import StowageError

if TYPE_CHECKING:
    from collections.abc import Iterator


class OneAtATime:
    """`with work.exclusively():` raises StowageError while that work is under way already, in this thread
    or another. It does not wait: the other thread may wait for this one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    @contextlib.contextmanager
    def exclusively(self) -> Iterator[None]:
        if not self.lock.acquire(blocking=False):
            raise StowageError("this process records a step already, in this thread or another",
                               "record one step after the other, or in processes of their own")
        try:
            yield
        finally:
            self.lock.release()


DEVICE = OneAtATime()  # pretend/session.py
RECORDING = OneAtATime()  # trace/session.py
