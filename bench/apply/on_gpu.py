#!/usr/bin/env python3
"""Plans for PyTorch on a GPU: peaks, seconds and values, beside what people do by hand.

    python bench/apply/on_gpu.py --stowage build/stowage -o applied.json [--stop-after SECONDS]

For each case the step is recorded, planned for a card with a share of what it takes, and run in processes
of their own: as it is, under the plan, with torch.autograd.graph.save_on_cpu(pin_memory=True), and with
every block checkpointed by hand. A process may take no more of the card than the plan was made for, except
the first. Prints a line a run; a run that begins after --stop-after is left out, and said to be.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
# (model, batch, tokens or pixels, share of what the step takes)
CASES = [("torchvision:resnet50", 128, 224, 0.5), ("torchvision:vit_b_16", 128, 224, 0.5),
         ("transformers:gpt2", 16, 512, 0.6), ("timm:convnext_atto", 128, 224, 0.5),
         ("transformers:llama", 16, 1024, 0.5)]
WAYS = ("as-is", "plan", "save_on_cpu", "checkpoint")
STEPS, WARMUP = 7, 3


def one_run(options: argparse.Namespace) -> int:
    """In a process of its own: prints JSON."""
    import contextlib

    import torch
    from torch.utils.checkpoint import checkpoint

    sys.path.insert(0, str(HERE))
    import one_model

    import stowage

    torch.use_deterministic_algorithms(True, warn_only=True)
    if options.limit:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, options.limit / total))
    torch.manual_seed(0)
    model = one_model.network(options.name).train().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs, target = one_model.batch_of(options.name, options.batch, options.size, "cuda")
    if options.way == "checkpoint":
        for path, part in model.named_modules():
            if path.rpartition(".")[2].isdigit() and not any(
                    word.isdigit() for word in path.split(".")[:-1]):
                def again(*arguments: Any, run: Any = part.forward, **keywords: Any) -> Any:
                    return checkpoint(run, *arguments, use_reentrant=False, **keywords)

                part.forward = again
    applied = stowage.apply(model, optimizer, options.plan) if options.way == "plan" else None
    around = torch.autograd.graph.save_on_cpu(pin_memory=True) if options.way == "save_on_cpu" else (
        contextlib.nullcontext())
    seconds, losses = [], []
    for step in range(WARMUP + STEPS):
        torch.cuda.synchronize()
        if step == 1:
            torch.cuda.reset_peak_memory_stats()
        begun = time.perf_counter()
        with around:
            losses.append(one_model.train_step(model, optimizer, inputs, target))
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begun)
    result = {"seconds": statistics.median(seconds[WARMUP:]), "first_seconds": seconds[0],
              "allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(),
              "losses": [loss.item() for loss in losses]}
    if applied is not None:
        result.update(out=applied.bytes_out, back=applied.bytes_back, fell_back=applied.fell_back,
                      reason=applied.first_reason)
    print(json.dumps(result))
    return 0


def run(words: list[str], seconds: float) -> tuple[str, str]:
    """(stdout, "" or why there is none)"""
    try:
        done = subprocess.run(words, text=True, capture_output=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "", f"no end after {seconds:.0f} s"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return done.stdout, "" if done.returncode == 0 else (lines or ["no message"])[-1][:200]


def case_runs(case: tuple[str, int, int, float], program: str, folder: str,
              left: Any) -> list[dict[str, Any]]:
    name, batch, size, share = case
    step, plan = f"{folder}/s.json", f"{folder}/p.yaml"
    shape = ["--batch", str(batch), "--size", str(size)]
    _, why = run([sys.executable, "-m", "stowage", "record", str(HERE / "one_model.py"), "-o", step,
                  "--compute-capability", "9.0", "--", name, *shape], left())
    if why:
        return [{"model": name, "failed": why}]
    shown, why = run([program, "check", step, "--gpu", "h200", "--format", "json"], left())
    if not shown:
        return [{"model": name, "failed": why}]
    limit = int(share * json.loads(shown)["device_bytes"])
    shown, why = run([program, "plan", step, "--for", "pytorch", "--gpu-memory", f"{limit}B",
                      "--compute-capability", "9.0", "-o", plan, "--format", "json"], left())
    if why or not pathlib.Path(plan).exists():
        return [{"model": name, "failed": why or "nothing fits"}]
    totals = json.loads(pathlib.Path(plan).read_text())["totals"]
    # What a process may reserve: the card less what the planner counts outside the allocator.
    reserved = limit - (totals["device_bytes"] - totals["peak_reserved_bytes"])
    rows = []
    for way in WAYS:
        words = [sys.executable, __file__, "--way", way, "--name", name, "--plan", plan, *shape,
                 "--limit", "0" if way == "as-is" else str(reserved)]
        if left() < 20:
            rows.append({"model": name, "way": way, "failed": "not run: no time is left"})
            continue
        out, why = run(words, left())
        row = {"model": name, "batch": batch, "way": way, "limit": reserved, "planned": totals,
               **(json.loads(out.splitlines()[-1]) if out and not why else {"failed": why})}
        rows.append(row)
        print(f"{name} {way}: " + (row["failed"] if "failed" in row else
              f"{row['seconds']:.4f} s, {row['allocated'] / 2**30:.2f} GiB allocated, "
              f"{row['reserved'] / 2**30:.2f} reserved; planned {totals['step_seconds']:.4f} s, "
              f"{totals['peak_allocated_bytes'] / 2**30:.2f}, "
              f"{totals['peak_reserved_bytes'] / 2**30:.2f}"), flush=True)
    losses = {row["way"]: row["losses"] for row in rows if "losses" in row}
    if "plan" in losses and "as-is" in losses:
        print(f"{name}: losses under the plan are "
              f"{'equal' if losses['plan'] == losses['as-is'] else 'DIFFERENT'}", flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stowage", default="build/stowage")
    parser.add_argument("-o", "--output", default="applied.json")
    parser.add_argument("--stop-after", type=float, default=240)
    for word in ("--way", "--name", "--plan"):
        parser.add_argument(word, help=argparse.SUPPRESS)
    for word in ("--batch", "--size", "--limit"):
        parser.add_argument(word, type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way is not None:
        return one_run(options)
    end = time.monotonic() + options.stop_after
    rows: list[dict[str, Any]] = []
    for case in CASES:
        if end - time.monotonic() < 40:
            print(f"{case[0]}: not run: no time is left", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows += case_runs(case, options.stowage, folder, lambda: max(1.0, end - time.monotonic()))
        pathlib.Path(options.output).write_text(json.dumps(rows, indent=1) + "\n")
    return int(any("failed" in row and row.get("way") in ("as-is", "plan") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
