"""The stowage program, asked job by job."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass

import described
from matrix import Job

_BUILT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "stowage")
_SECONDS = 120


class NoProgram(Exception):
    """There is no program, or it is not stowage."""


@dataclass(frozen=True)
class Prediction:
    tensor_bytes: int
    reserved_bytes: int
    device_bytes: int
    fits: bool


@dataclass(frozen=True)
class Refusal:
    """The program gave no figures."""

    said: str  # its own words


def find_program(asked: str | None) -> str:
    """The path asked for, else $STOWAGE, else the one that was built, else the one on the PATH."""
    for path in (asked, os.environ.get("STOWAGE")):
        if path:
            return path
    found = _BUILT if os.path.exists(_BUILT) else shutil.which("stowage")
    if not found:
        raise NoProgram("no stowage program: build it, or give --stowage PATH")
    return os.path.normpath(found)


class Program:
    """One card and one stack of software for all questions. NoProgram if it does not run.

    `pytorch`: "2.11.0+cu130", as the measured one says of itself.
    """

    def __init__(self, path: str, gpu: str, alloc_conf: str | None = None,
                 pytorch: str | None = None):
        self.path = path
        self.version = self._ask("--version").stdout.strip()
        if not self.version.startswith("stowage "):
            raise NoProgram(f"{path} is not stowage: --version says '{self.version[:60]}'")
        self.options = frozenset(re.findall(r"^\s+(?:-\w, )?--([a-z0-9-]+)",
                                            self._ask("check", "--help").stdout, re.MULTILINE))
        self.common = ["--gpu", gpu, "--format", "json"]
        self.common += ["--alloc-conf", alloc_conf] if alloc_conf else []
        release = re.match(r"\d+\.\d+", pytorch or "")
        if release and "pytorch-version" in self.options:
            self.common += ["--pytorch-version", release[0]]

    def _ask(self, *arguments: str) -> subprocess.CompletedProcess:
        try:
            return subprocess.run([self.path, *arguments], capture_output=True, text=True,
                                  errors="replace", timeout=_SECONDS)
        except OSError as error:
            raise NoProgram(f"cannot run {self.path}: {error.strerror}") from error

    def question(self, job: Job) -> described.Question:
        return described.question(job, self.options)

    def check(self, job: Job, context_bytes: int | None = None) -> Prediction | Refusal:
        """`context_bytes`: what a CUDA context took, where it was measured."""
        context = [] if context_bytes is None else ["--context", f"{context_bytes}B"]
        content = self.content(self.question(job).arguments, context)
        return content if isinstance(content, Refusal) else prediction(content)

    def content(self, arguments, further=()) -> dict | Refusal:
        """All that `check` says to these arguments on this card; `further` stand behind it."""
        try:
            answer = self._ask("check", *arguments, *self.common, *further)
        except subprocess.TimeoutExpired:
            return Refusal(f"no answer in {_SECONDS} s")
        if answer.returncode not in (0, 1):  # 1 is "does not fit", with all figures
            said = answer.stderr.strip() or answer.stdout.strip() or "nothing"
            return Refusal(f"exit code {answer.returncode}: {said}")
        try:
            return json.loads(answer.stdout)
        except ValueError as error:
            return Refusal(f"unreadable answer: {type(error).__name__}: {error}")


def prediction(content: dict) -> Prediction | Refusal:
    """The figures of one pass in what `check` says."""
    try:
        peak = content["peak"]
        return Prediction(int(peak["tensor_bytes"]), int(peak["reserved_bytes"]),
                          int(peak["device_bytes"]), content["verdict"] == "fits")
    except (ValueError, KeyError, TypeError) as error:
        return Refusal(f"unreadable answer: {type(error).__name__}: {error}")
