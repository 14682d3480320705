"""A process that has imported everything, and forks one child a job: a job then starts at once.

    python server.py MODULE:FUNCTION PRELOADED...

It never touches CUDA, since a CUDA context does not survive a fork: each child makes its own, as a
fresh interpreter would. Once it is ready it writes one line, {"ready": true, "cuda_touched": false}.
Then it answers each line of its input with a line, and never speaks unasked:

    {"start": [SPEC, RESULT, LOG]}   {"pid": n}      the child is the leader of its own process group
    {"ended": n}                     {"code": c}     null while it runs, negative for a signal

A child calls the function as process.py says. When the input ends, as it does when whoever started the
server dies, it kills all children and ends.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
import traceback
from typing import IO, Any

import process

# Makes torch.cuda.is_available() ask the driver without initialising CUDA. Before torch is imported.
# A child goes without it, as a fresh interpreter would.
_CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"
os.environ[_CHECK] = "1"

_NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED


def preload(names: list[str]) -> None:
    """Imports what the jobs need. A package that is absent or broken is left to the jobs to meet."""
    for name in names:
        module, _, attribute = name.partition(":")
        try:
            found = importlib.import_module(module)
            if attribute:
                getattr(found, attribute)
        except Exception:
            traceback.print_exc()


def cuda_touched() -> bool:
    """Whether CUDA was initialised in this process, by torch or past it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return True
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) != _NOT_INITIALIZED


def _child(target: str, spec_path: str, result_path: str, log_path: str) -> int:
    """The job, in the forked process; its exit code."""
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.pop(_CHECK)
    try:
        process.run_here(target, spec_path, result_path)
        return 0
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


class Children:
    """`own`: a file of the parent's that the children must not hold open."""

    def __init__(self, target: str, own: IO[str]) -> None:
        self.target, self.own = target, own
        self.codes: dict[int, int | None] = {}  # by process id; None while it is not known to have ended

    def start(self, paths: list[str]) -> int:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.setpgid(0, 0)
                self.own.close()
                code = _child(self.target, *paths)
            finally:
                os._exit(code)
        try:
            os.setpgid(pid, pid)  # here too, so that it is a group whoever comes first
        except OSError:
            pass
        self.codes[pid] = None
        return pid

    def ended(self, pid: int) -> int | None:
        if self.codes[pid] is None:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self.codes[pid] = os.waitstatus_to_exitcode(status)
        return self.codes[pid]

    def kill(self) -> None:
        for pid, code in self.codes.items():
            if code is None and self.ended(pid) is None:
                os.killpg(pid, signal.SIGKILL)


def main(target: str, preloaded: list[str]) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the packages print does not mix with the answers

    def answer(content: dict[str, Any]) -> None:
        print(json.dumps(content), file=answers, flush=True)

    preload(preloaded)
    touched = cuda_touched()
    answer({"ready": not touched, "cuda_touched": touched})
    children = Children(target, answers)
    try:
        for line in sys.stdin:
            asked = json.loads(line)
            if "start" in asked:
                answer({"pid": children.start(asked["start"])})
            else:
                answer({"code": children.ended(asked["ended"])})
    finally:
        children.kill()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
