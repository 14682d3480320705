"""One job's process: started, watched, ended, and made into a record that is true however it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from matrix import Job

_HERE = os.path.dirname(os.path.abspath(__file__))
_JOB_COMMAND = (sys.executable, os.path.join(_HERE, "one_job.py"))


class Fresh:
    """Starts each job in a new interpreter."""

    name = "fresh"

    def __init__(self, command=_JOB_COMMAND):
        self.command = command
        self.children = {}

    def start(self, spec_path: str, result_path: str, log_path: str) -> int:
        """The process id, which is also that of the process group."""
        with open(log_path, "w", encoding="utf-8") as log:
            child = subprocess.Popen([*self.command, spec_path, result_path], stdout=log, stderr=log,
                                     stdin=subprocess.DEVNULL, start_new_session=True,
                                     env={**os.environ, "HF_HUB_OFFLINE": "1"})
        self.children[child.pid] = child
        return child.pid

    def code(self, pid: int) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self.children[pid].poll()

    def close(self) -> None:
        pass


class Running:
    """A job that was started and whose record is not made yet."""

    def __init__(self, starter, spec: dict, timeout: float):
        self.starter, self.spec, self.timeout = starter, spec, timeout
        self.started = time.monotonic()
        self.folder = tempfile.TemporaryDirectory()
        with open(self._path("spec.json"), "w", encoding="utf-8") as file:
            json.dump(spec, file)
        self.pid = starter.start(*map(self._path, ("spec.json", "result.json", "log")))

    def _path(self, name: str) -> str:
        return os.path.join(self.folder.name, name)

    def record(self) -> dict | None:
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


def run_job(spec: dict, timeout: float, starter=None) -> dict:
    """Runs one job alone and returns its record. Never raises for what the job does."""
    job = Running(starter or Fresh(), spec, timeout)
    try:
        while (record := job.record()) is None:
            time.sleep(0.02)
        return record
    finally:  # also on Ctrl-C: nothing of the job outlives it
        job.end()


def _record(spec: dict, result_path: str, code: int | None, timeout: float, said: str) -> dict:
    """What the job wrote, with a status that is true however the process ended."""
    try:
        with open(result_path, encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError):
        record = {"key": Job(**spec["job"]).key(), "job": spec["job"], "status": "running",
                  "phases": {}}
    if record["status"] != "running":
        return record
    if code is None:
        record.update(status="timeout", error={"kind": "Timeout",
                                               "message": f"not finished after {timeout:g} s"})
    else:
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        record.update(status="failed", error={"kind": "ProcessEnded", "message": how, "said": said})
    return record
