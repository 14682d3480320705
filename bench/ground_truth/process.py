"""One job's process: started, watched, ended, and made into a record that is true however it ended.

A job is a function MODULE:FUNCTION that is given a spec, a dictionary with the job's "key", and the path
where it writes its record as JSON. The record's "status" is "running" until the job has come to its end.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Protocol

Record = dict[str, Any]


def run_here(target: str, spec_path: str, result_path: str) -> None:
    """The job, in this process."""
    module, _, function = target.partition(":")
    with open(spec_path, encoding="utf-8") as file:
        spec = json.load(file)
    getattr(importlib.import_module(module), function)(spec, result_path)


class Starter(Protocol):
    """Starts jobs' processes: in a new interpreter (Fresh) or as forks of a server (forked.Forked)."""

    name: str

    def start(self, spec_path: str, result_path: str, log_path: str) -> int:
        """The process id, which is also that of the process group."""

    def code(self, pid: int) -> int | None:
        """The exit code, negative for a signal; None while it runs."""

    def close(self) -> None: ...


class Fresh:
    """Starts each job in a new interpreter. `command` is given the paths of the spec and of the record."""

    name = "fresh"

    def __init__(self, target: str, command: tuple[str, ...] | None = None) -> None:
        self.command = command or (sys.executable, os.path.abspath(__file__), target)
        self.children: dict[int, subprocess.Popen] = {}

    def start(self, spec_path: str, result_path: str, log_path: str) -> int:
        with open(log_path, "w", encoding="utf-8") as log:
            child = subprocess.Popen([*self.command, spec_path, result_path], stdout=log, stderr=log,
                                     stdin=subprocess.DEVNULL, start_new_session=True,
                                     env={**os.environ, "HF_HUB_OFFLINE": "1"})
        self.children[child.pid] = child
        return child.pid

    def code(self, pid: int) -> int | None:
        return self.children[pid].poll()

    def close(self) -> None:
        pass


class Running:
    """A job that was started and whose record is not made yet."""

    def __init__(self, starter: Starter, spec: dict[str, Any], timeout: float) -> None:
        self.starter, self.spec, self.timeout = starter, spec, timeout
        self.started = time.monotonic()
        self.folder = tempfile.TemporaryDirectory()
        with open(self._path("spec.json"), "w", encoding="utf-8") as file:
            json.dump(spec, file)
        self.pid = starter.start(*map(self._path, ("spec.json", "result.json", "log")))

    def _path(self, name: str) -> str:
        return os.path.join(self.folder.name, name)

    def record(self) -> Record | None:
        """The record if the job ended or its time is up; None while it runs."""
        code = self.starter.code(self.pid)
        if code is None and time.monotonic() - self.started < self.timeout:
            return None
        self.end()
        with open(self._path("log"), encoding="utf-8", errors="replace") as log:
            said = log.read()[-2000:]
        record = _record(self.spec, self._path("result.json"), code, self.timeout, said)
        record.update(process=self.starter.name, at_once=self.spec.get("at_once", 1))
        record["wall_seconds"] = round(time.monotonic() - self.started, 3)
        self.folder.cleanup()
        return record

    def end(self) -> None:
        """Ends the job's whole process group and waits for it; nothing if it ended itself."""
        if self.starter.code(self.pid) is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            while self.starter.code(self.pid) is None:
                time.sleep(0.01)


def run_job(spec: dict[str, Any], timeout: float, starter: Starter) -> Record:
    """Runs one job alone and returns its record. Never raises for what the job does."""
    job = Running(starter, spec, timeout)
    try:
        while (record := job.record()) is None:
            time.sleep(0.02)
        return record
    finally:  # also on Ctrl-C: nothing of the job outlives it
        job.end()


def _record(spec: dict[str, Any], result_path: str, code: int | None, timeout: float, said: str) -> Record:
    """What the job wrote, with a status that is true however the process ended."""
    try:
        with open(result_path, encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError):
        record = {name: spec[name] for name in ("key", "job") if name in spec}
        record.update(status="running", phases={})
    if record["status"] != "running":
        return record
    if code is None:
        record.update(status="timeout", error={"kind": "Timeout",
                                               "message": f"not finished after {timeout:g} s"})
    else:
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        record.update(status="failed", error={"kind": "ProcessEnded", "message": how, "said": said})
    return record


if __name__ == "__main__":
    run_here(*sys.argv[1:])
