"""Several jobs at once, and what must be seen to when they share a device. No torch here.

The allocator's figures are per process and stay true beside others. What does not: step times (marked
`alone: false`), the device's use as a whole (see nvml.py), and running out of memory, or giving cached
memory back, which may come of the neighbours. Such jobs are run again by themselves at the end.
"""

from __future__ import annotations

import time

import nvml
from matrix import Job
from process import Running

_PAUSE = 0.02  # seconds between looks at the running jobs
_OUTSIDE = 1 << 30  # what a process may hold besides its allocator


class Admission:
    """Whether a job may start beside those that run: by the sizes that are known, and the free memory."""

    def __init__(self, total: int | None, reader, keep_free: float, sizes: dict[str, int]):
        self.total, self.reader, self.keep_free, self.sizes = total, reader, keep_free, sizes

    def expected(self, job: Job) -> int:
        """Bytes on the device: the job's cap, else what it was said to take, else not known: 0."""
        if job.cap_allocator_bytes is not None:
            return job.cap_allocator_bytes + _OUTSIDE
        return job.cap_bytes or self.sizes.get(job.key(), 0)

    def allows(self, job: Job, running: list[Job]) -> bool:
        if not running or self.total is None:
            return True
        if self.expected(job) + sum(map(self.expected, running)) > self.total - _OUTSIDE:
            return False
        try:
            total, used = self.reader.memory() if self.reader else (self.total, 0)
        except nvml.Unavailable:
            return True
        return total - used >= self.keep_free * total


def is_doubtful(job: Job, record: dict) -> bool:
    """Whether neighbours may be why it failed, ran out of memory, or emptied its cache.

    Out of memory under a cap is the cap's: capped jobs start only where all caps fit on the device.
    """
    if record["status"] == "failed":  # cuBLAS, for one, does not always say that memory was short
        return True
    if job.cap_bytes is not None or job.cap_allocator_bytes is not None:
        return False
    return record["status"] == "oom" or any((phase or {}).get("alloc_retries")
                                            for phase in record["phases"].values())


class Pool:
    """Runs jobs up to `limit` at once; `finished(job, record)` is told of each one's result.

    `crowded(job)` is told of those that are put off to run alone. `spec_of(job, at_once)` is what a
    job's process is told. No job starts after `stop_at`, a time.monotonic(); `check` may raise, and
    then the running jobs are ended.
    """

    def __init__(self, starter, limit: int, admission: Admission, spec_of, timeout: float,
                 stop_at: float | None, finished, crowded, check=lambda: None):
        self.starter, self.limit, self.admission = starter, limit, admission
        self.spec_of, self.timeout, self.stop_at = spec_of, timeout, stop_at
        self.finished, self.crowded, self.check = finished, crowded, check
        self.running: dict[Job, Running] = {}

    def run(self, jobs: list[Job], alone: list[Job]) -> None:
        """`jobs` together, then `alone` and what was doubtful one by one. All ends if this raises."""
        try:
            again = self._together(jobs)
            for job in [*alone, *again]:
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
            while (waiting and len(self.running) < self.limit and not self._late()
                   and self.admission.allows(waiting[0], list(self.running))):
                self._start(waiting.pop(0), self.limit)
            again += self._look(self.limit)
        return again

    def _look(self, at_once: int) -> list[Job]:
        """Takes what ended; gives back what is doubtful. Waits a little if nothing ended."""
        self.check()
        ended = [(job, record) for job, running in self.running.items()
                 if (record := running.record()) is not None]
        doubtful = []
        for job, record in ended:
            del self.running[job]
            if at_once > 1 and is_doubtful(job, record):
                self.crowded(job)
                doubtful.append(job)
            else:
                self.finished(job, record)
        if not ended:
            time.sleep(_PAUSE)
        return doubtful
