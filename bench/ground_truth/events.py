"""Writes every allocation and release of one step, as PyTorch's allocator saw it.

    python events.py -o events.json.gz --parallel 6 "model=vit_b_16,batch=16" "group=serve;model=gpt2"

Arguments are keys of measure.py's jobs (`field=value,...`) or words that choose among fine_tuning.py's
cases (with `group=` in them). Where a peak is off, the events say by which tensors. Each set-up runs in
a process of its own, forked from one that has imported everything; sizes are those asked for, before
the allocator rounds them. Exit codes: 0 all written, 1 some failed, 2 usage, 3 no GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import sys
import traceback

import card
from forked import forked_or_fresh
from measure import Usage, describe
from pool import Admission, Pool

_PACKAGES = ("torch", "torchvision", "timm", "transformers", "peft")  # loaded before the processes fork
_MOST = 500_000  # events of a step
_FRAMES = 6  # of Python, the innermost


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


def run(spec: dict, path: str) -> None:
    """Runs one set-up in this process and writes its record, whatever happens."""
    record = {"key": spec["key"]}
    try:
        record.update(status="ok", phases=phases_of(spec["key"]))
    except Exception as error:
        record.update(status="failed", phases={}, error={
            "message": f"{type(error).__name__}: {error}"[:2000],
            "where": traceback.format_exc()[-2000:]})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(record, file)


def _answer(record: dict) -> dict:
    """What the file says of a set-up: its phases, or why there are none."""
    if record["status"] == "ok":
        return {"key": record["key"], "phases": record["phases"]}
    error = record["error"]
    where = error.get("where") or error.get("said")
    return {"key": record["key"], "error": error["message"], **({"where": where} if where else {})}


def run_all(keys: list[str], parallel: int) -> list[dict]:
    """In the order of the keys; `parallel` processes at once."""
    answers: dict[str, dict] = {}

    def done(key: str, record: dict) -> None:
        answers[key] = _answer(record)
        said = answers[key].get("error", "ok")
        print(f"[{len(answers)}/{len(keys)}] {key}: {said[:200]}", file=sys.stderr, flush=True)

    def spec_of(key: str, at_once: int) -> dict:
        return {"key": key, "at_once": at_once}

    with contextlib.closing(forked_or_fresh("events:run", _PACKAGES, "events")) as starter:
        Pool(starter, parallel, Admission(None, lambda key: 0), spec_of, float("inf"), None,
             done).run(keys)
    return [answers[key] for key in keys]


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", help="keys of jobs, or words of cases")
    parser.add_argument("-o", "--output", default="events.json.gz")
    parser.add_argument("--parallel", type=int, default=1)
    options = parser.parse_args(arguments)
    try:
        keys = chosen(options.what)
        software = describe("cuda", "events: no CUDA device")["software"]
    except (Usage, ValueError, KeyError) as error:
        print(f"events: {error}", file=sys.stderr)
        return 2
    versions = {**{name: card.version(name) for name in _PACKAGES}, "torch": software["torch_build"]}
    answers = run_all(keys, options.parallel)
    with gzip.open(options.output, "wt", encoding="utf-8") as file:
        json.dump({"software": versions, "answers": answers}, file)
    return int(any("error" in answer for answer in answers))


if __name__ == "__main__":
    sys.exit(main())
