"""Runs cases in processes of their own, several at once, forked from one that has loaded the libraries.

Loading takes ten seconds and a case two or three, so each case's process is a fork of this one, which
must not have touched CUDA: a fork cannot use its parent's context. `fresh` starts Python anew instead.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass

from tuning_cases import Case

LIBRARIES = ("torch", "transformers", "peft", "torchvision", "timm")


def preload() -> None:
    """The libraries, and what they load when first used; CUDA is asked for through NVML alone."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    import importlib
    import warnings
    warnings.simplefilter("ignore")  # of what later versions call otherwise
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:
            print(f"without {name}: its cases fail", file=sys.stderr)
    import transformers
    transformers.logging.set_verbosity_error()
    for name in ("LlamaForCausalLM", "GPT2LMHeadModel", "MistralForCausalLM", "Qwen2ForCausalLM",
                 "Qwen3ForCausalLM", "GemmaForCausalLM", "BertForMaskedLM", "ViTForImageClassification",
                 "T5ForConditionalGeneration", "WhisperForConditionalGeneration"):
        getattr(transformers, name)


def forked(run, path: str) -> int:
    """The id of a child that calls run(path) and ends, without what this process does at its end."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        run(path)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


@dataclass
class Running:
    case: Case
    child: int
    path: str
    started: float
    alone: bool
    killed: bool = False


class Pool:
    """`run(case, path)` measures in a child and leaves JSON at `path`; `done(case, record)` gets it.

    `room`: no case starts that would take those running beyond so many bytes by `needs`, which has
    estimates by key; a case without one takes no room.
    """

    def __init__(self, run, done, parallel: int, timeout: float, room: int, needs: dict[str, int]):
        self.run, self.done = run, done
        self.parallel, self.timeout, self.room, self.needs = parallel, timeout, room, needs
        self.running: list[Running] = []
        self.folder, self.started = "", 0

    def work(self, cases: list[Case], until: float) -> list[Case]:
        """Runs the cases, starting none after `until`; returns those that were not started."""
        with tempfile.TemporaryDirectory() as self.folder:
            return self._work(list(cases), until)

    def _work(self, waiting: list[Case], until: float) -> list[Case]:
        while waiting or self.running:
            if waiting and time.monotonic() > until:
                if not self.running:
                    break
            else:
                self._start_what_fits(waiting)
            self._collect()
            time.sleep(0.01)
        return waiting

    def _start_what_fits(self, waiting: list[Case]) -> None:
        while waiting and len(self.running) < self.parallel:
            free = self.room - sum(self._need(other.case) for other in self.running)
            case = next((case for case in waiting if self._need(case) <= free), None)
            if case is None and self.running:
                return
            case = case or waiting[0]  # too large for any company: alone
            waiting.remove(case)
            self._start(case)

    def _need(self, case: Case) -> int:
        return self.needs.get(case.key(), 0)

    def _start(self, case: Case) -> None:
        path = os.path.join(self.folder, f"{self.started}.json")
        self.started += 1
        for other in self.running:
            other.alone = False
        child = forked(lambda target: self.run(case, target), path)
        self.running.append(Running(case, child, path, time.monotonic(), not self.running))

    def _collect(self) -> None:
        for one in list(self.running):
            ended, status = os.waitpid(one.child, os.WNOHANG)
            if ended:
                self.running.remove(one)
                self.done(one.case, _record(one, status))
            elif time.monotonic() - one.started > self.timeout and not one.killed:
                one.killed = True
                os.kill(one.child, signal.SIGKILL)

    def kill(self) -> None:
        """Ends what runs; its records are lost."""
        for one in self.running:
            os.kill(one.child, signal.SIGKILL)
            os.waitpid(one.child, 0)
        self.running = []


def _record(one: Running, status: int) -> dict:
    """What the child left, and what became of it."""
    try:
        with open(one.path, encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError):
        record = {"key": one.case.key(), "phases": {}, "status": "running"}
    if record["status"] == "running":  # it did not come to an end by itself
        record["status"] = "timeout" if one.killed else "failed"
        record["error"] = {"message": f"the process ended with {os.waitstatus_to_exitcode(status)}"}
    return {**record, "alone": one.alone, "wall_seconds": round(time.monotonic() - one.started, 2)}
