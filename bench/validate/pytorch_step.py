"""PyTorch's own training step beside ours: eager, or with its saved tensors offloaded to the host.

    python pytorch_step.py MODEL BATCH [--seq N] [--mode resident|offload] [--memory BYTES]
                           [--steps N] [--device cuda|cpu]

One line on stdout: `ok SECONDS PEAK_BYTES`, `out-of-memory`, or `missing PACKAGE`. SECONDS is the median
over the steps but the first two. The networks, their random batches, Adam and the order of the step are
those of bench/ground_truth. `offload` is torch.autograd.graph.save_on_cpu(pin_memory=True) around the
step: what autograd saves goes to pinned host memory in forward and comes back in backward; parameters,
gradients and Adam's state stay. `--memory` caps PyTorch's allocator (set_per_process_memory_fraction),
so that either mode is asked for the same memory as a plan's budget. With `--device cpu` the script is
tried where no GPU is: the memory is not capped, its peak is 0, and the seconds say nothing about a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ground_truth"))

WARM_UP = 2


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="PyTorch's own training step beside ours.")
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("--seq", type=int)
    parser.add_argument("--mode", choices=("resident", "offload"), default="resident")
    parser.add_argument("--memory", type=int, help="bytes that the allocator may take")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    return parser.parse_args(words)


def offloading(torch, mode: str, device: str):
    """The context of a step. Pinned memory needs a device."""
    if mode == "resident":
        return contextlib.nullcontext()
    return torch.autograd.graph.save_on_cpu(pin_memory=device == "cuda")


def timed_steps(torch, trainer, asked: argparse.Namespace) -> list[float]:
    wait = torch.cuda.synchronize if asked.device == "cuda" else lambda: None
    seconds = []
    for _ in range(WARM_UP + asked.steps):
        wait()
        begin = time.perf_counter()
        with offloading(torch, asked.mode, asked.device):
            trainer.step()
        wait()
        seconds.append(time.perf_counter() - begin)
    return seconds[WARM_UP:]


def measured(asked: argparse.Namespace) -> str:
    import torch

    import models
    import training
    from matrix import Job, complete

    job = complete(Job(asked.model, asked.batch, seq=asked.seq))
    training.set_flags(job)
    if asked.device == "cuda" and asked.memory:
        total = torch.cuda.mem_get_info()[1]
        torch.cuda.set_per_process_memory_fraction(min(1.0, asked.memory / total))
    try:
        trainer = training.Trainer(job, training.network_on_device(job, asked.device), asked.device)
        seconds = timed_steps(torch, trainer, asked)
    except models.PackageMissing as missing:
        return f"missing {missing}"
    except torch.OutOfMemoryError:
        return "out-of-memory"
    peak = torch.cuda.max_memory_reserved() if asked.device == "cuda" else 0
    return f"ok {statistics.median(seconds):.6f} {peak}"


if __name__ == "__main__":
    print(measured(arguments(sys.argv[1:])))
