#!/usr/bin/env python3
"""Compares what two builds of the program answer: check, batch and plan of the shipped models on three cards.

    bench/same_answers.py OLD_PROGRAM NEW_PROGRAM
    bench/same_answers.py OLD_PROGRAM NEW_PROGRAM --models 'vgg*' --gpus rtx3090 --ignore-added

Exit code, stdout (JSON) and stderr must be the same bytes. Prints a line for each question whose answers
differ, then how many answers of each command are the same ("refused": the same error). Plans are searched
for within seconds: where answers differ, each program is asked twice more, and they agree if some answer of
NEW is one of OLD. "unclear": no answer agrees, but OLD contradicts itself; ask with more --plan-seconds.
Exit codes: 0 none differs, 1 some differ, 2 usage.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

_HOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "configs", "hosts", "generic.yaml")


@dataclass(frozen=True)
class Answer:
    exit_code: int
    out: bytes
    err: bytes


class Program:
    """A build of the program, with a cache of cuDNN's answers of its own."""

    def __init__(self, path: str, cache: str) -> None:
        self.path = path
        self.environment = {**os.environ, "XDG_CACHE_HOME": cache}
        self.environment.pop("STOWAGE_NO_CACHE", None)

    def ask(self, words: tuple[str, ...]) -> Answer:
        done = subprocess.run([self.path, *words], capture_output=True, env=self.environment,
                              stdin=subprocess.DEVNULL)
        return Answer(done.returncode, done.stdout, done.stderr)


def without_added(new: Any, old: Any, added: Counter[str], place: str = "") -> Any:
    """`new` without the members that `old` does not have; `added` counts these by their place."""
    if isinstance(new, dict) and isinstance(old, dict):
        added.update(f"{place}.{name}" for name in new if name not in old)
        return {name: without_added(value, old[name], added, f"{place}.{name}")
                for name, value in new.items() if name in old}
    if isinstance(new, list) and isinstance(old, list):
        return [without_added(value, old[index] if index < len(old) else None, added, place + "[]")
                for index, value in enumerate(new)]
    return new


def agree(new: Answer, old: Answer, added: Counter[str] | None) -> bool:
    """Whether they are the same bytes; with `added`, but for members of the JSON that only `new` has."""
    if new == old:
        return True
    if added is None or (new.exit_code, new.err) != (old.exit_code, old.err):
        return False
    try:
        contents = json.loads(new.out), json.loads(old.out)
    except ValueError:
        return False
    found: Counter[str] = Counter()
    reduced = without_added(*contents, found)
    if json.dumps(reduced) != json.dumps(contents[1]):
        return False
    added.update(found)
    return True


def compare(old: Program, new: Program, words: tuple[str, ...], added: Counter[str] | None) -> str:
    """"same", "refused" (the same words, and no answer), "different" or "unclear"."""
    of_old, of_new = [old.ask(words)], [new.ask(words)]
    if agree(of_new[0], of_old[0], added):
        return "same" if of_old[0].exit_code in (0, 1) else "refused"
    for _ in range(2):
        of_old.append(old.ask(words))
        of_new.append(new.ask(words))
    if any(agree(one, other, added) for one in of_new for other in of_old):
        return "same"
    return "different" if len(set(of_old)) == 1 else "unclear"


def questions(models: list[str], gpus: list[str], plan_seconds: str) -> list[tuple[str, ...]]:
    asked = []
    for model in models:
        for gpu in gpus:
            card = ("--gpu", gpu, "--format", "json")
            asked += [("check", model, "--batch", "8", *card), ("batch", model, *card),
                      ("plan", model, "--batch", "8", *card, "--budget", "50%", "--host", _HOST,
                       "--time-limit", plan_seconds)]
    return asked


def shipped_models(program: Program, pattern: str) -> list[str]:
    listed = json.loads(program.ask(("models", "--format", "json")).out)["models"]
    return [model["name"] for model in listed if fnmatch.fnmatch(model["name"], pattern)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD_PROGRAM")
    parser.add_argument("new", metavar="NEW_PROGRAM")
    parser.add_argument("--models", default="*", metavar="GLOB", help="which of OLD's shipped models [*]")
    parser.add_argument("--gpus", default="rtx3090,a100-80gb,gtx1080ti", metavar="NAME,...",
                        help="cards [%(default)s]")
    parser.add_argument("--plan-seconds", default="0.01", metavar="SECONDS",
                        help="plan's --time-limit; the first plan is always searched for [%(default)s]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="at once [all cores]")
    parser.add_argument("--ignore-added", action="store_true",
                        help="members of the JSON that only NEW has are no difference; they are listed")
    options = parser.parse_args()
    added: Counter[str] | None = Counter() if options.ignore_added else None
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        old, new = (Program(path, os.path.join(folder, name))
                    for path, name in ((options.old, "old"), (options.new, "new")))
        models = shipped_models(old, options.models)
        if not models:
            parser.error(f"no shipped model matches '{options.models}'")
        asked = questions(models, options.gpus.split(","), options.plan_seconds)
        with ThreadPoolExecutor(options.jobs) as pool:
            for words, result in zip(asked, pool.map(lambda words: compare(old, new, words, added), asked)):
                counts[words[0], result] += 1
                if result not in ("same", "refused"):
                    print(f"{result}: stowage {' '.join(words)}", flush=True)
    for command in ("check", "batch", "plan"):
        parts = [f"{counts[command, result]} {result}" for result in ("same", "refused", "different", "unclear")]
        print(f"{command:5} {', '.join(parts)}")
    for member, count in sorted((added or {}).items()):
        print(f"ignored, only NEW has it: {member} ({count})")
    return int(any(result == "different" for _, result in counts))


if __name__ == "__main__":
    sys.exit(main())
