"""allocator/*.json: random operations on PyTorch's own caching allocator, with its figures after each.

The allocator's code is in libc10_cuda.so and asks CUDA for memory, streams and events only;
pretended_card.cpp answers for CUDA, so that the very code of a release runs without a GPU.
"""

import argparse
import os
import pathlib
import random
import subprocess
import tempfile

import torch

import fake_cuda
import json_format

HERE = pathlib.Path(__file__).parent
MIB = 1 << 20
STREAMS = 2
COLUMNS = ["refused", "allocated", "requested", "active", "reserved", "inactive_split", "segments"]
END = ["alloc_retries", "ooms", "early_refusals", "device_allocations", "device_releases",
       "stream_synchronizations"]

# name: settings, the card's memory, what others use of it
CASES = {
    "default-large-card": ("", 64 << 30, 0),
    "default": ("", 400 * MIB, 60 * MIB),
    "max-split-20": ("max_split_size_mb:20", 400 * MIB, 0),
    "max-split-40": ("max_split_size_mb:40,max_non_split_rounding_mb:64", 400 * MIB, 0),
    "roundup": ("roundup_power2_divisions:4", 400 * MIB, 0),
    "roundup-list": ("roundup_power2_divisions:[1:8,4:4,8:2,16:16,>:2]", 400 * MIB, 0),
    "fraction": ("per_process_memory_fraction:0.5", 700 * MIB, 0),
    "garbage": ("per_process_memory_fraction:0.5,garbage_collection_threshold:0.6", 1000 * MIB, 0),
    "garbage-max-split": ("per_process_memory_fraction:0.6,garbage_collection_threshold:0.5,"
                          "max_split_size_mb:24", 1000 * MIB, 0),
    "refused-early": ("throw_on_cudamalloc_oom:True", 400 * MIB, 40 * MIB),
    "large-segment-12": ("large_segment_size_mb:12,max_split_size_mb:12", 400 * MIB, 0),
    "expandable": ("expandable_segments:True", 400 * MIB, 60 * MIB),
    "expandable-all": ("expandable_segments:True,large_segment_size_mb:12,max_split_size_mb:32,"
                       "per_process_memory_fraction:0.8,garbage_collection_threshold:0.5",
                       500 * MIB, 0),
}


def build(folder):
    """The program, linked against the installed torch."""
    libraries = pathlib.Path(torch.__file__).parent / "lib"
    include = fake_cuda.cuda_headers()
    runtime = include.parent / "lib"
    program = pathlib.Path(folder) / "allocator_run"
    subprocess.run(
        ["g++", "-std=c++20", "-O1", "-rdynamic", f"-I{libraries.parent / 'include'}",
         f"-I{include}", "-o", program, HERE / "allocator_run.cpp", HERE / "pretended_card.cpp",
         f"-L{libraries}", "-lc10_cuda", "-lc10", f"-L{runtime}", "-l:libcudart.so.13",
         f"-Wl,-rpath,{libraries}:{runtime}"], check=True)
    return program


def size(numbers):
    kind = numbers.randrange(10)
    if kind == 0:
        return numbers.randint(1, 600)
    for until, low, high in [(3, 600, MIB), (5, MIB, 10 * MIB), (7, 10 * MIB, 48 * MIB),
                             (8, 48 * MIB, 120 * MIB)]:
        if kind < until:
            return numbers.randint(low, high)
    edge = numbers.choice([512, MIB, 2 * MIB, 10 * MIB, 11 * MIB, 20 * MIB, 21 * MIB, 40 * MIB])
    return max(1, edge + numbers.randint(-2, 2) * numbers.choice([1, 512]))


def operations(seed, count):
    """What allocator_run.cpp reads."""
    numbers = random.Random(seed)
    live, lines = [], []
    for buffer in range(count):
        what = numbers.randrange(100)
        if what < 48 or not live:
            stream = max(0, numbers.randint(-2, STREAMS - 1))
            lines.append(f"a {buffer} {size(numbers)} {stream}")
            live.append(buffer)
        elif what < 82:
            lines.append(f"f {live.pop(numbers.randrange(len(live)))}")
        elif what < 90:
            lines.append(f"r {numbers.choice(live)} {numbers.randrange(STREAMS)}")
        elif what < 97:
            lines.append(f"c {numbers.randrange(STREAMS)}")
        else:
            lines.append("e" if what < 98 else "p")
    return lines


def run(program, case, lines):
    settings, total, in_use = case
    environment = dict(os.environ, PYTORCH_ALLOC_CONF=settings)
    output = subprocess.run([program, str(total), str(in_use), "segments"], check=True,
                            input="\n".join(lines), capture_output=True, text=True,
                            env=environment).stdout.splitlines()
    figures = [[int(word) for word in line.split()] for line in output[:len(lines)]]
    segments = [[int(word) for word in line.split()] for line in output[len(lines) + 1:]]
    # Each level with its peak; the peaks are kept of the end only.
    rows = [[line, row[0], *row[1:13:2]] for line, row in zip(lines, figures)]
    last = figures[-1]
    return {
        "torch": torch.__version__.split("+")[0], "settings": settings, "total": total,
        "in_use": in_use, "columns": COLUMNS, "operations": rows,
        "peaks": dict(zip(COLUMNS[1:], last[2:13:2])), "end": dict(zip(END, last[13:])),
        "first_failure": output[len(lines)].removeprefix("message "),
        "segments": [[row[0] - (1 << 40), *row[1:]] for row in segments],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=400)
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "allocator")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder)
        for seed, (name, case) in enumerate(CASES.items()):
            lines = operations(seed, arguments.operations)
            json_format.write(arguments.out / f"{name}.json", run(program, case, lines))


if __name__ == "__main__":
    main()
