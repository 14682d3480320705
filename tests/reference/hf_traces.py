#!/usr/bin/env python3
"""Write tests/hf/traces/<folder>-b<batch>[-<precision>].json: the training step of each small
configuration under tests/hf, in compact.py's form.

    python hf_traces.py [--precisions fp32 bf16] [small-llama ...]
"""

import argparse
import gc
import time

import compact
import fake_cuda
import hf_models

PRECISIONS = ("fp32", "bf16", "amp-bf16")
OPTIMIZERS = ("sgd-momentum", "adamw")
BATCH = 2
OUT = hf_models.HF / "traces"


def small_folders():
    return sorted(path.name for path in hf_models.HF.glob("small-*"))


def write(folder, precision):
    import catalogue
    import json_format

    case = compact.Case(folder, BATCH, precision, optimizers=OPTIMIZERS)
    entry = catalogue.Entry(folder, hf_models.reference(folder))
    started = time.monotonic()
    content = compact.on_cuda(case, entry)
    gc.collect()
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{case.stem}.json"
    json_format.write(path, content)
    print(f"{case.stem}: {path.stat().st_size} bytes, {time.monotonic() - started:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", help="only these")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    arguments = parser.parse_args()
    fake_cuda.relaunch_with_shim()
    import torch

    torch.set_num_threads(1)
    failed = []
    for folder in arguments.folders or small_folders():
        for precision in arguments.precisions:
            try:
                write(folder, precision)
            except Exception as error:  # say which, go on with the others
                failed.append(f"{folder} {precision}: {type(error).__name__}: {str(error)[:300]}")
                print("FAILED", failed[-1], flush=True)
    if failed:
        raise SystemExit("\n".join(["failed:", *failed]))


if __name__ == "__main__":
    main()
