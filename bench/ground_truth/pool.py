"""Several jobs at once, and what must be seen to when they share a device. No torch here.

The allocator's figures are per process and stay true beside others. What does not: step times (marked
`alone: false`), the device's use as a whole (see nvml.py), and running out of memory, or giving cached
memory back, which may come of the neighbours. Such jobs are run again by themselves at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import nvml
from process import Record, Running, Starter

Job = TypeVar("Job")  # hashable; what it is, only the callers know

_PAUSE = 0.02  # seconds between looks at the running jobs


class Admission(Generic[Job]):
    """Which job may start beside those that run: by the sizes that are known, and the free memory.

    `room`: bytes that all may take together, None: not known; `expected(job)`: bytes, 0 where unknown.
    `reader` asks the device, of which a share of `keep_free` stays free; None: the sizes alone decide.
    """

    def __init__(self, room: int | None, expected: Callable[[Job], int],
                 reader: nvml.Reader | None = None, keep_free: float = 0) -> None:
        self.room, self.expected, self.reader, self.keep_free = room, expected, reader, keep_free

    def choose(self, waiting: list[Job], running: list[Job]) -> Job | None:
        """The first that may start now; None: none may. Alone any may."""
        if not running or self.room is None:
            return waiting[0]
        left = self.room - sum(map(self.expected, running))
        found = next((job for job in waiting if self.expected(job) <= left), None)
        return found if found is not None and self._enough_is_free() else None

    def _enough_is_free(self) -> bool:
        if self.reader is None:
            return True
        try:
            total, used = self.reader.memory()
        except nvml.Unavailable:
            return True
        return total - used >= self.keep_free * total


def is_doubtful(record: Record, capped: bool = False) -> bool:
    """Whether neighbours may be why it failed, ran out of memory, or emptied its cache.

    Out of memory under a cap is the cap's: capped jobs start only where all caps fit on the device.
    """
    if record["status"] == "failed":  # cuBLAS, for one, does not always say that memory was short
        return True
    if capped:
        return False
    return record["status"] == "oom" or any((phase or {}).get("alloc_retries")
                                            for phase in record["phases"].values())


class Pool(Generic[Job]):
    """Runs jobs up to `limit` at once; `finished(job, record)` is told of each one's result.

    `spec_of(job, at_once)` is what a job's process is told (process.py). No job starts after `stop_at`, a
    time.monotonic(). Where `doubtful(job, record)`, the job is run again alone; `crowded(job)` is told so
    beforehand. `check` may raise, and then the running jobs are ended.
    """

    def __init__(self, starter: Starter, limit: int, admission: Admission[Job],
                 spec_of: Callable[[Job, int], dict[str, Any]], timeout: float, stop_at: float | None,
                 finished: Callable[[Job, Record], object],
                 doubtful: Callable[[Job, Record], bool] = lambda job, record: False,
                 crowded: Callable[[Job], object] = lambda job: None,
                 check: Callable[[], object] = lambda: None) -> None:
        self.starter, self.limit, self.admission = starter, limit, admission
        self.spec_of, self.timeout, self.stop_at = spec_of, timeout, stop_at
        self.finished, self.doubtful, self.crowded, self.check = finished, doubtful, crowded, check
        self.running: dict[Job, Running] = {}

    def run(self, jobs: list[Job], alone: list[Job] | None = None) -> None:
        """`jobs` together, then `alone` and what was doubtful one by one. All ends if this raises."""
        try:
            again = self._together(jobs)
            for job in [*(alone or []), *again]:
                if self._late():
                    break
                self._start(job, at_once=1)
                while self.running:
                    self._look(at_once=1)
        finally:
            for running in self.running.values():
                running.end()

    def _late(self) -> bool:
        return self.stop_at is not None and time.monotonic() >= self.stop_at

    def _start(self, job: Job, at_once: int) -> None:
        self.running[job] = Running(self.starter, self.spec_of(job, at_once), self.timeout)

    def _together(self, jobs: list[Job]) -> list[Job]:
        """Those that must be run again, alone."""
        waiting, again = list(jobs), []
        while self.running or (waiting and not self._late()):
            while waiting and len(self.running) < self.limit and not self._late():
                job = self.admission.choose(waiting, list(self.running))
                if job is None:
                    break
                waiting.remove(job)
                self._start(job, self.limit)
            again += self._look(self.limit)
        return again

    def _look(self, at_once: int) -> list[Job]:
        """Takes what ended; gives back what is to run again. Waits a little if nothing ended."""
        self.check()
        ended = [(job, record) for job, running in self.running.items()
                 if (record := running.record()) is not None]
        again = []
        for job, record in ended:
            del self.running[job]
            if at_once > 1 and self.doubtful(job, record):
                self.crowded(job)
                again.append(job)
            else:
                self.finished(job, record)
        if not ended:
            time.sleep(_PAUSE)
        return again
