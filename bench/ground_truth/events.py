"""Writes every allocation and release of one step, as PyTorch's allocator saw it.

    python events.py -o events.json.gz --parallel 6 "model=vit_b_16,batch=16" "group=serve;model=gpt2"

Arguments are keys of measure.py's jobs (`field=value,...`) or words that choose among fine_tuning.py's
cases (with `group=` in them). Where a peak is off, the events say by which tensors. Each set-up runs in
a process of its own, forked from one that has imported everything; sizes are those asked for, before
the allocator rounds them. Exit codes: 0 all written, 1 some failed, 2 usage, 3 no GPU.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import importlib
import json
import os
import sys
import tempfile
import traceback

import tuning_pool

_MOST = 500_000  # events of a step
_FRAMES = 6  # of Python, the innermost


class Usage(Exception):
    """A mistake in the command line."""


def is_case(text: str) -> bool:
    return "group=" in text


def chosen(texts: list[str]) -> list[str]:
    """The keys of all that the arguments choose, cases' and jobs'."""
    import tuning_cases
    from matrix import Job
    keys = []
    for text in texts:
        if not is_case(text):
            keys.append(Job.from_key(text).key())
            continue
        found = [case.key() for case in tuning_cases.CASES if text in case.key()]
        if not found:
            raise Usage(f"no case of fine_tuning.py has '{text}' in its key")
        keys += found
    return list(dict.fromkeys(keys))


def job_steps(key: str) -> dict:
    """The step of a job of measure.py."""
    import training
    from matrix import Job
    job = Job.from_key(key)
    training.set_flags(job)
    trainer = training.Trainer(job, training.network_on_device(job, "cuda"), "cuda")
    return {"step": trainer.step}


def case_steps(key: str) -> dict:
    """The steps of a case of fine_tuning.py by phase; `fill` stands between two and is not recorded."""
    import torch
    import tuning_models
    import tuning_steps
    from tuning_cases import CASES
    torch.manual_seed(0)
    case = next(case for case in CASES if case.key() == key)
    network = tuning_models.build(case, "cuda")
    if case.cache:
        server = tuning_steps.Server(case, network, "cuda")
        return {"prefill": server.prefill, "fill": server.fill, "decode": lambda: server.run(1)}
    inputs = tuning_models.batch(case, network, "cuda")
    if case.training():
        trainer = tuning_steps.Trainer(case, network, "cuda")
        return {"step": lambda: trainer.step(**inputs)}
    arguments = () if case.from_hub() else (inputs.pop("pixel_values"),)

    def infer():
        with torch.inference_mode(), tuning_steps.autocast(case, "cuda"):
            return network(*arguments, **inputs)
    return {"step": infer}


def recorded(step) -> list:
    """[action, address, bytes, frames] of all that one call of `step` allocates and frees."""
    import torch
    history = torch.cuda.memory._record_memory_history
    torch.cuda.synchronize()
    history(enabled="all", context="alloc", stacks="python", max_entries=_MOST)
    result = step()
    torch.cuda.synchronize()
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    history(enabled=None)
    del result
    return [[event["action"], event["addr"], event["size"],
             [f"{os.path.basename(frame['filename'])}:{frame['line']} {frame['name']}"
              for frame in event.get("frames", [])[:_FRAMES]]] for event in trace]


def measured(step) -> dict:
    """What was allocated before, the events, and the peaks that the allocator itself gives."""
    import torch
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()["requested_bytes.all.current"]
    events = recorded(step)
    return {"before": before, "peak": torch.cuda.memory_stats()["requested_bytes.all.peak"],
            "allocated_peak": torch.cuda.max_memory_allocated(), "events": events}


def phases_of(key: str) -> dict:
    """Each phase's step, after two that warm it up."""
    import torch
    steps = case_steps(key) if is_case(key) else job_steps(key)
    phases = {}
    with torch.no_grad() if "prefill" in steps else torch.enable_grad():
        for name, step in steps.items():
            if name == "fill":
                step()
                continue
            for _ in range(0 if name == "decode" else 2):
                step()
            phases[name] = measured(step)
    return phases


def _in_child(key: str, path: str) -> None:
    """Runs one set-up and writes its answer, whatever happens."""
    try:
        answer = {"key": key, "phases": phases_of(key)}
    except Exception as error:
        answer = {"key": key, "error": f"{type(error).__name__}: {error}"[:2000],
                  "where": traceback.format_exc()[-2000:]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(answer, file)


def _answer(key: str, path: str) -> dict:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {"key": key, "error": "the process ended"}


def run_all(keys: list[str], parallel: int) -> list[dict]:
    """In the order of the keys; `parallel` processes at once."""
    answers, running, waiting = {}, {}, list(enumerate(keys))
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < parallel:
                number, key = waiting.pop(0)
                path = os.path.join(folder, f"{number}.json")
                child = tuning_pool.forked(functools.partial(_in_child, key), path)
                running[child] = (key, path)
            child, _ = os.wait()
            key, path = running.pop(child)
            answers[key] = _answer(key, path)
            said = answers[key].get("error", "ok")
            print(f"[{len(answers)}/{len(keys)}] {key}: {said[:200]}", file=sys.stderr, flush=True)
    return [answers[key] for key in keys]


def _imported() -> dict:
    """The versions of what is there; everything is imported, nothing of CUDA touched."""
    versions = {}
    for name in ("torch", "torchvision", "timm", "transformers", "peft"):
        try:
            versions[name] = importlib.import_module(name).__version__
        except ImportError:
            versions[name] = None
    return versions


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", help="keys of jobs, or words of cases")
    parser.add_argument("-o", "--output", default="events.json.gz")
    parser.add_argument("--parallel", type=int, default=1)
    options = parser.parse_args(arguments)
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # asking for a GPU makes no context here
    try:
        keys = chosen(options.what)
    except (Usage, ValueError, KeyError) as error:
        print(f"events: {error}", file=sys.stderr)
        return 2
    versions = _imported()
    import torch
    if not torch.cuda.is_available():
        print("events: no CUDA device", file=sys.stderr)
        return 3
    answers = run_all(keys, options.parallel)
    with gzip.open(options.output, "wt", encoding="utf-8") as file:
        json.dump({"software": versions, "answers": answers}, file)
    return int(any("error" in answer for answer in answers))


if __name__ == "__main__":
    sys.exit(main())
