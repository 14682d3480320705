#!/usr/bin/env python3
"""Plans for PyTorch, carried out for many models: what moves, what falls back, what lives, which bits.

    STOWAGE_PYTHON=... python bench/apply/models.py [NAME...] [--share 0.8] > table.md

Each model is recorded, planned for a card with that share of what its step reserves, rehearsed on the
pretended device, and trained for two steps of 2 samples on the CPU with and without the plan. A row is
printed as it is made. Needs the program (STOWAGE_PROGRAM) and a Python with the libraries
(STOWAGE_PYTHON).
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
ONE = str(ROOT / "bench/apply/one_model.py")
PYTHON = os.environ.get("STOWAGE_PYTHON", sys.executable)
PROGRAM = os.environ.get("STOWAGE_PROGRAM", str(ROOT / "build/stowage"))
MODELS = [
    *(f"torchvision:{name}" for name in (
        "resnet18", "resnet50", "vgg11_bn", "densenet121", "mobilenet_v2", "efficientnet_b0",
        "convnext_tiny", "swin_t", "vit_b_16", "regnet_y_400mf")),
    *(f"timm:{name}" for name in (
        "convnext_atto", "deit_tiny_patch16_224", "resnetv2_50", "efficientnetv2_rw_t", "mixer_b16_224",
        "regnety_002", "repvgg_a0", "dpn48b", "poolformer_s12", "levit_128s")),
    *(f"transformers:{name}" for name in (
        "gpt2", "bert", "roberta", "distilbert", "t5", "opt", "llama", "qwen2"))]
HEADER = """\
| model | plan | each way | fell back | peak of living tensors | planned | on the CPU |
|---|---|---|---|---|---|---|"""


class Failed(Exception):
    pass


def run(*words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "STOWAGE_PROGRAM": PROGRAM}
    done = subprocess.run(words, text=True, capture_output=True, env=environment, check=False)
    if done.returncode not in (0, 1):
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise Failed(" ".join(lines[-12:])[-300:] or "no message")
    return done.stdout


def planned(folder: str, name: str, share: float, *options: str) -> tuple[dict[str, Any], str]:
    """(the chosen plan's JSON, its file). Raises Failed where none fits."""
    step, plan = f"{folder}/s.json", f"{folder}/p.yaml"
    run(PYTHON, "-m", "stowage", "record", ONE, "-o", step, "--", name, *options)
    whole = json.loads(run(PROGRAM, "check", step, "--gpu-memory", "200GiB", "--format", "json"))["device_bytes"]
    shown = json.loads(run(PROGRAM, "plan", step, "--for", "pytorch", "--gpu-memory",
                           f"{int(share * whole)}B", "-o", plan, "--format", "json"))
    chosen = next((row for row in shown["plans"] if row["name"] == shown["chosen"]), None)
    if chosen is None:
        raise Failed("nothing fits")
    return chosen, plan


def mib(size: int) -> str:
    return f"{size / 2 ** 20:,.1f} MiB"


def row_of(name: str, share: float) -> str:
    with tempfile.TemporaryDirectory() as folder:
        batch = ["--batch", "16"]
        chosen, plan = planned(folder, name, share, *batch)
        found = json.loads(run(PYTHON, ONE, name, "--plan", plan, *batch))
        exact = found["out"] == found["back"] == found["planned"]
        moved = mib(found["out"]) if exact else f"{found['out']} out, {found['back']} back of {found['planned']}"
        try:
            bits = json.loads(run(PYTHON, ONE, name, "--plan", plan, "--compare", "--batch", "2"))
            same = "equal bits" if bits["equal"] else "DIFFERENT"
            cpu = f"{same}, {mib(bits['out'])} moved, {bits['fell_back']} fell back"
        except Failed as why:
            cpu = f"not run: {why}"
        fell = str(found["fell_back"]) + (f" ({found['reason']})" if found["reason"] else "")
        return (f"| {name} | {chosen['name']} | {moved} | {fell} | {mib(found['peak'])} | "
                f"{mib(found['planned_peak'])} | {cpu} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--share", type=float, default=0.8, help="of what the step takes of a card (0.8)")
    options = parser.parse_args()
    print(HEADER, flush=True)
    for name in options.names or MODELS:
        try:
            print(row_of(name, options.share), flush=True)
        except Failed as why:
            print(f"| {name} | failed: {why} | | | | | |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
