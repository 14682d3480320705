#!/usr/bin/env python3
"""What stowage plan finds for a fixed list of requests, the work that it counts and the processor time it takes.

    bench/plan_effort.py PROGRAM [--against FILE] [--write FILE] [PLAN'S OPTION]...

The units of work (planner/problem/work_budget.hpp) are calibrated so that a second of the processor is about a
million of them, and the usual work so that a request takes a few seconds. --write keeps the rows as JSON,
--against compares steps and times with such a file; further words go to each `stowage plan`.
"""

import argparse
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

_HOST = str(Path(__file__).resolve().parent.parent / "configs/hosts/generic.yaml")

_REQUESTS = """
alexnet -b 128 --gpu gtx1650 --budget 60%
vgg16 -b 64 --gpu rtx3060 --budget 50%
vgg16 -b 64 --gpu rtx3060 --budget 80% --precision amp-bf16
resnet18 -b 128 --gpu rtx3060 --budget 25%
resnet50 -b 64 --gpu rtx3060 --budget 35%
resnet50 -b 64 --gpu rtx3060 --budget 35% --precision amp-fp16
resnet50 -b 64 --gpu a100-pcie-40gb --budget 70%
resnet152 -b 32 --gpu rtx3090 --budget 50%
densenet121 -b 32 --gpu rtx3060 --budget 50%
densenet201 -b 32 --gpu rtx3060 --budget 35% --precision amp-bf16
efficientnet_b0 -b 64 --gpu rtx3060 --budget 50%
convnext_tiny -b 64 --gpu rtx3090 --budget 35% --precision amp-bf16 --optimizer adamw
bert-base -b 16 --gpu rtx3060 --budget 50% --optimizer adamw
bert-large -b 16 --gpu a100-pcie-40gb --budget 35% --precision amp-bf16 --optimizer adamw
bert-large -b 16 --gpu rtx3090 --budget 60% --optimizer adamw
gpt2 -b 8 --gpu rtx3060 --budget 50% --precision amp-bf16 --optimizer adamw
gpt2-medium -b 4 --gpu rtx3090 --budget 25% --optimizer adamw
gpt2-large -b 2 --gpu rtx3090 --budget 50% --precision amp-bf16 --optimizer adamw
swin_t -b 32 --gpu rtx3060 --budget 50%
unet -b 16 --gpu rtx3060 --budget 50%
gpt2-xl -b 1 --gpu rtx3060 --budget 50% --mode inference
llama-3.2-1b -b 1 --gpu rtx3090 --budget 40% --precision bf16 --optimizer adamw
lstm-lm -b 32 --gpu rtx3060 --budget 50%
efficientnet_b0 -b 256 --gpu rtx3060 --mode inference --budget 40%
"""


def planned(program: str, request: str, more: list[str]) -> dict[str, Any]:
    """One request's row: the chosen plan, its step in milliseconds, the work counted, seconds of the processor."""
    words = [program, "plan", *shlex.split(request), "--host", _HOST, "--format", "json", *more]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{request}: exit code {done.returncode}\n{done.stderr}")
    answer = json.loads(done.stdout)
    steps = {plan["name"]: plan["step_seconds"] for plan in answer["plans"]}
    search = answer.get("search", {})
    return {
        "request": request,
        "chosen": answer["chosen"],
        "step_ms": 1e3 * steps[answer["chosen"]],
        "work": search.get("work", 0),
        "untried": search.get("untried", []),
        "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def main() -> None:
    """Prints a row a request, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--against", metavar="FILE")
    parser.add_argument("--write", metavar="FILE")
    options, more = parser.parse_known_args()
    known: dict[str, dict[str, Any]] = {}
    if options.against:
        known = {row["request"]: row for row in json.loads(Path(options.against).read_text())}
    print(f"on {os.cpu_count()} processors; step in ms, work in millions of units, time in seconds of the processor")
    rows = []
    for request in _REQUESTS.strip().splitlines():
        row = planned(options.program, request, more)
        rows.append(row)
        then = known.get(request)
        beside = "" if then is None else f"{row['step_ms'] / then['step_ms'] - 1:+8.2%} {then['cpu_seconds']:6.2f}"
        print(
            f"{row['step_ms']:9.2f} {beside:16} {row['cpu_seconds']:6.2f} {row['work'] / 1e6:6.2f}  {row['chosen']:20}"
            f" {request}{'  untried: ' + ', '.join(row['untried']) if row['untried'] else ''}",
            flush=True,
        )
    seconds = [row["cpu_seconds"] for row in rows]
    print(f"processor time: {statistics.median(seconds):.2f} s in the median, {max(seconds):.2f} at most")
    if options.write:
        Path(options.write).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
