"""The program `stowage`, which sizes and plans what this package records."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

from stowage.command_line.interrupts import INTERRUPTS
from stowage.errors import StowageError


def stowage_program() -> str:
    """Where the program is: STOWAGE_PROGRAM, else in this package (a wheel has it), else beside it in a
    clone, else on PATH. Raises StowageError where it is not."""
    named = os.environ.get("STOWAGE_PROGRAM")
    if named:
        return named
    here = pathlib.Path(__file__).resolve()
    for place in (here.parents[1] / "program/bin/stowage", here.parents[3] / "stowage"):
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("stowage")
    if found is None or os.path.realpath(found) == os.path.realpath(sys.argv[0]):
        raise StowageError("the program stowage, which plans, is not on PATH",
                           "STOWAGE_PROGRAM=FILE says where it is")
    return found


def asked(words: list[str], text: str) -> subprocess.CompletedProcess[str]:
    """The program, run with these words and that text on its stdin. Raises StowageError where it cannot
    be run."""
    program = stowage_program()
    try:
        return subprocess.run([program, *words], check=False, text=True, capture_output=True, input=text)
    except OSError as error:
        raise StowageError(f"{program}: {error.strerror}",
                           "STOWAGE_PROGRAM=FILE says where the program is") from error


def answer_of(words: list[str], text: str = "") -> dict[str, Any]:
    """The program's JSON answer to these words. Raises StowageError where it refuses them, as it says
    itself."""
    done = asked([*words, "--format", "json"], text)
    try:
        answer: dict[str, Any] = json.loads(done.stdout or done.stderr)
    except json.JSONDecodeError:
        raise StowageError(done.stderr.strip() or "the program gave no answer") from None
    mistakes = [row for row in answer.get("diagnostics", []) if row["severity"] == "error"]
    if mistakes:
        raise StowageError(mistakes[0]["message"], mistakes[0].get("hint") or "")
    return answer


def text_of_answer(words: list[str], text: str = "") -> str:
    """The program's answer as it prints it, without its last line's end."""
    return asked(words, text).stdout.rstrip("\n")


def capability_in(row: dict[str, Any]) -> tuple[int, int]:
    """Of a row of `stowage gpus`."""
    major, minor = divmod(round(10 * row["compute_capability"]), 10)
    return major, minor


def full_name_of(card: str) -> str:
    """Of the card that the program finds by this name. Raises StowageError: there is none."""
    return str(answer_of(["check", "mnist-cnn", "--gpu", card])["device"]["name"])


def compute_capability_of(card: str) -> tuple[int, int]:
    """Of the card that the program finds by this name. Raises StowageError: there is none."""
    return cards_by_capability([card])[0][0]


def cards_by_capability(cards: list[str]) -> list[tuple[tuple[int, int], list[str]]]:
    """Names of cards, or ["all"], as [(compute capability, those that have it)], in the order of the
    first of each. Raises StowageError for a name that the program does not find."""
    rows = answer_of(["gpus"])["gpus"]
    known = {row["name"]: capability_in(row) for row in rows}
    found: dict[tuple[int, int], list[str]] = {}
    for card in known if cards == ["all"] else cards:
        name = card if card in known else full_name_of(card)
        if name not in known:
            raise StowageError(f"{name} is not in the program's own list")
        found.setdefault(known[name], []).append(name)
    return list(found.items())


def run_stowage(words: list[str], text: str) -> int:
    """Runs the program with these words and that text on its stdin, on this process' stdout and stderr;
    its exit code. Raises StowageError where it cannot be run."""
    program = stowage_program()
    try:
        with INTERRUPTS.left_to_child():
            done = subprocess.run([program, *words], check=False, input=text, text=True)
        return done.returncode if done.returncode >= 0 else 128 - done.returncode
    except OSError as error:
        raise StowageError(f"{program}: {error.strerror}",
                           "STOWAGE_PROGRAM=FILE says where the program is") from error
