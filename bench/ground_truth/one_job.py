"""Measures one job in this process, which process.py starts for measure.py.

The spec holds {"key": ..., "job": {...}, "device": "cuda"|"cpu", "uuid": ..., "warmup": n, "steps": m}; "at_once", how many
jobs may be running (1), and "threads" of the CPU (PyTorch's choice); and for capped jobs
"overhead_bytes" or "estimate", which is recorded as it stands. The record is written again after every
phase, so that a job that is killed leaves the phases that it finished; "status" is "running" until the
end.
"""

from __future__ import annotations

import json
import os
import re
import traceback

import cap
import catalogue
from journal import atomic_write
from matrix import Job

PHASES = ("before", "context", "loaded", "first_step", "warm", "steady")
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = r"([0-9]+(?:\.[0-9]+)?) (bytes|KiB|MiB|GiB)"
# What PyTorch's text says about each figure. The wording changed over the years: each is optional.
_FIGURES = {
    "asked_bytes": r"[Tt]ried to allocate " + _SIZE,
    "capacity_bytes": r"(?:total capacity of " + _SIZE + r")",
    "free_bytes": r"of which " + _SIZE + r" is free",
    "process_bytes": r"this process has " + _SIZE,
    "allowed_bytes": _SIZE + r" allowed",
    "allocated_bytes": _SIZE + r" is allocated by PyTorch",
    "reserved_unallocated_bytes": _SIZE + r" is reserved by PyTorch but unallocated",
}
# Libraries that ask the driver for memory themselves report it in their own words.
_OOM_TEXTS = ("CUDA error: out of memory", "CUDNN_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_ALLOC_FAILED",
              "CUDA out of memory")


def out_of_memory(error: BaseException) -> dict | None:
    """{message, its figures in bytes, rounded as there} if GPU memory ran out, else None."""
    text = str(error)
    if type(error).__name__ != "OutOfMemoryError" and not any(part in text for part in _OOM_TEXTS):
        return None
    figures = {}
    for name, pattern in _FIGURES.items():
        found = re.search(pattern, text)
        if found:
            figures[name] = round(float(found.group(1)) * _UNITS[found.group(2)])
    return {"kind": type(error).__name__, "message": text, **figures}


def failure(error: BaseException) -> dict:
    """What went wrong and where, with file names but not folders."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
    return {"kind": type(error).__name__, "message": str(error)[:4000], "where": where[-12:]}


class Recorder:
    """The record so far; every phase that ends goes to the disk."""

    def __init__(self, path: str, record: dict):
        self.path, self.record = path, record
        self.save()

    def save(self, **values) -> None:
        self.record.update(values)
        atomic_write(self.path, json.dumps(self.record))

    def phase(self, name: str, snapshot: dict) -> None:
        self.record["phases"][name] = snapshot
        self.save()


def warm_up(trainer, warmup: int) -> None:
    """The rest of `warmup` steps, and up to 20 more until one update was not skipped by the scaler.

    Without an applied update there is no optimizer state, and the steady figures would lack it.
    """
    while trainer.steps < warmup or (trainer.skipped_updates == trainer.steps
                                     and trainer.steps < warmup + 20):
        trainer.step()


def measure(job: Job, spec: dict, meter, recorder: Recorder) -> None:
    """All phases. Peaks are reset at the start of each, so a phase's maxima are its own."""
    import training
    training.set_flags(job, spec.get("threads"))
    recorder.phase("before", meter.before())
    context = meter.context()
    recorder.phase("context", context)
    cap.apply(job, spec, meter, context, recorder)
    recorder.save(flags=training.flags())

    meter.reset_peaks()
    network = training.network_on_device(job, meter.device)
    recorder.phase("loaded", meter.snapshot())
    weights = list(network.parameters())
    recorder.save(parameters=sum(weight.numel() for weight in weights),
                  parameter_bytes=sum(weight.nbytes for weight in weights),
                  parameter_tensors=len(weights),
                  buffer_bytes=sum(buffer.nbytes for buffer in network.buffers()))
    del weights

    meter.reset_peaks()
    trainer = training.Trainer(job, network, meter.device)
    with training.observed_updates(trainer.optimizer) as updates:
        trainer.step()
        recorder.phase("first_step", meter.snapshot())
        meter.reset_peaks()
        warm_up(trainer, spec["warmup"])  # watched too: the scaler may skip the first updates
    recorder.phase("warm", meter.snapshot())
    meter.reset_peaks()
    step_time = {**meter.timed(trainer.step, spec["steps"]), "alone": _alone(spec)}
    recorder.phase("steady", meter.snapshot())
    defaults = trainer.optimizer.defaults
    recorder.save(step_time=step_time, optimizer_state_bytes=trainer.optimizer_state_bytes(),
                  update_functions=sorted(updates), foreach=defaults.get("foreach"),
                  fused=defaults.get("fused"), steps=trainer.steps,
                  skipped_updates=trainer.skipped_updates)


def run(spec: dict, result_path: str) -> dict:
    """Measures the job and writes its record, whatever happens short of being killed."""
    job = Job(**spec["job"])
    recorder = Recorder(result_path, {"key": job.key(), "job": spec["job"], "status": "running",
                                      "phases": {}})
    if spec.get("estimate"):
        recorder.save(estimate=spec["estimate"])
    meter = None
    try:
        import meter as meters
        recorder.save(source=catalogue.find(job.model).package)
        meter = meters.DryMeter() if spec["device"] == "cpu" else meters.CudaMeter(
            spec.get("uuid"), _alone(spec))
        measure(job, spec, meter, recorder)
        recorder.save(status="ok")
    except Exception as error:
        memory = out_of_memory(error)
        if memory:
            recorder.save(status="oom", oom=memory, failed_in=_unfinished(recorder))
            _last_snapshot(meter, recorder)
        elif type(error).__name__ == "PackageMissing":
            recorder.save(status="skipped", reason=f"package missing: {error}")
        else:
            recorder.save(status="failed", error=failure(error), failed_in=_unfinished(recorder))
    return recorder.record


def _alone(spec: dict) -> bool:
    return spec.get("at_once", 1) == 1


def _unfinished(recorder: Recorder) -> str | None:
    return next((phase for phase in PHASES if phase not in recorder.record["phases"]), None)


def _last_snapshot(meter, recorder: Recorder) -> None:
    """Peaks of the phase that ran out, if the device still answers."""
    try:
        recorder.phase("at_oom", meter.snapshot())
    except Exception as error:
        recorder.save(at_oom_unreadable=str(error)[:500])
