"""The program `stowage`, which sizes and plans what this package records."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

from stowage.errors import StowageError


def stowage_program() -> str:
    """Where the program is: STOWAGE_PROGRAM, else beside this package in a clone, else on PATH. Raises
    StowageError where it is not."""
    named = os.environ.get("STOWAGE_PROGRAM")
    if named:
        return named
    beside = pathlib.Path(__file__).resolve().parents[3] / "stowage"
    if beside.is_file() and os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which("stowage")
    if found is None:
        raise StowageError("the program stowage, which plans, is not on PATH",
                           "STOWAGE_PROGRAM=FILE says where it is")
    return found


def answer_of(words: list[str]) -> dict[str, Any]:
    """The program's JSON answer to these words. Raises StowageError where it refuses them, as it says
    itself."""
    program = stowage_program()
    try:
        done = subprocess.run([program, *words, "--format", "json"], check=False, text=True,
                              capture_output=True)
    except OSError as error:
        raise StowageError(f"{program}: {error.strerror}",
                           "STOWAGE_PROGRAM=FILE says where the program is") from error
    try:
        answer: dict[str, Any] = json.loads(done.stdout or done.stderr)
    except json.JSONDecodeError:
        raise StowageError(done.stderr.strip() or f"{program} gave no answer") from None
    mistakes = [row for row in answer.get("diagnostics", []) if row["severity"] == "error"]
    if mistakes:
        raise StowageError(mistakes[0]["message"], mistakes[0].get("hint") or "")
    return answer


def compute_capability_of(card: str) -> tuple[int, int]:
    """Of the card that the program finds by this name. Raises StowageError: there is none."""
    name = answer_of(["check", "mnist-cnn", "--gpu", card])["device"]["name"]
    for row in answer_of(["gpus"])["gpus"]:
        if row["name"] == name:
            major, minor = divmod(round(10 * row["compute_capability"]), 10)
            return major, minor
    raise StowageError(f"{name} is not in the program's own list")


def run_stowage(words: list[str], text: str) -> int:
    """Runs the program with these words and that text on its stdin, on this process' stdout and stderr;
    its exit code. Raises StowageError where it cannot be run."""
    program = stowage_program()
    try:
        return subprocess.run([program, *words], check=False, input=text, text=True).returncode
    except OSError as error:
        raise StowageError(f"{program}: {error.strerror}",
                           "STOWAGE_PROGRAM=FILE says where the program is") from error
