"""Hostile files of every kind that the program reads, each held to an answer or a refusal.

    python3 tests/fuzz/hostile.py PROGRAM [--mutations N] [--seed N] [--keep FOLDER] [--only WORD]

First the files that are written here: bombs, numbers at the ends of their types, broken encodings,
names that lead elsewhere, pipes and devices. Then N mutations of the repository's own files. Each run may
address 2 GB and take 5 s of the processor; it must end with exit code 0, 1 or 2. What does not is named,
kept, and makes the exit status 1. libFuzzer's targets (tests/fuzz/run.sh), which need clang, see more.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile

from hostile_files.case import Hostile
from hostile_files.descriptions import descriptions, machines
from hostile_files.huggingface import configs, weight_files
from hostile_files.keras import keras_files
from hostile_files.mutations import mutations
from hostile_files.onnx import onnx_files
from hostile_files.plans import plan_files
from hostile_files.special import special_files

ADDRESS_SPACE = 2 << 30
SECONDS = 5.0
PATIENCE = 120.0  # seconds by the clock, of a machine with other work
SHOWN: list[bool] = []  # whether each outcome is printed


def run(program: str, case: Hostile, folder: pathlib.Path) -> str | None:
    """Why the case is not as it should be."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CPU, (int(2 * SECONDS), int(2 * SECONDS)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    words = [program, *(word.replace("{}", str(folder)) for word in case.command.split())]
    environment = {**os.environ, "STOWAGE_NO_CACHE": "1", "HF_HOME": str(folder / "hub")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        ended = subprocess.run(
            words,
            preexec_fn=limit,
            capture_output=True,
            timeout=PATIENCE,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"still running after {PATIENCE:.0f} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if ended.returncode not in (0, 1, 2):
        return f"exit code {ended.returncode}: {ended.stderr[-300:].decode(errors='replace')}"
    output = ended.stdout + ended.stderr
    if SHOWN:
        lines = ended.stderr.decode(errors="replace").strip().splitlines() or ["-"]
        said = lines[0].replace(str(folder), "")[:150]
        print(f"{seconds:5.2f} s  {ended.returncode}  {case.name}: {said}")
    if b"\x1b" in output or b"\0" in output:
        return "a control byte is printed"
    if ended.returncode == 2 and not output.strip():
        return "refused without a word"
    if len(output) > 1_000_000:
        return f"{len(output):,} bytes are printed"
    return f"takes {seconds:.1f} s of the processor" if seconds > SECONDS else None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--mutations", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--only", default="", help="those whose name has this word")
    parser.add_argument("--show", action="store_true", help="print each outcome")
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    random.seed(options.seed)
    if options.show:
        SHOWN.append(True)
    special = pathlib.Path(tempfile.mkdtemp())
    total, found = 0, 0
    kinds = (
        descriptions(),
        machines(),
        configs(),
        weight_files(),
        onnx_files(),
        keras_files(),
        plan_files(program),
        special_files(special),
        mutations(options.mutations, options.seed),
    )
    for cases in kinds:
        for case in cases:
            if options.only not in case.name:
                continue
            total += 1
            folder = special if case.name.startswith("special") else pathlib.Path(tempfile.mkdtemp())
            why = run(program, case, folder)
            if why is not None:
                found += 1
                print(f"{case.name}: {why}", flush=True)
                if options.keep and folder != special:
                    shutil.copytree(folder, options.keep / f"{found}")
                    continue
            if folder != special:
                shutil.rmtree(folder)
    shutil.rmtree(special)
    print(f"{total} hostile inputs, seed {options.seed}: {found} not as they should be")
    return 1 if found or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
